//! What bots have in common without being told: pages of the system's files, disks, locks, memory of
//! the network. These rules keep one bot from moving there what another can see, or what no limit
//! counts.

use libc::c_long;

use super::{Case, DENIED, Question, Verdict};

/// Calls that do not exist for bots, so that programs fall back: what tells of memory and mounts
/// that bots share, and requests that the whole machine counts together.
pub(super) const ABSENT: &[c_long] = &[
    libc::SYS_io_setup,
    libc::SYS_io_destroy,
    libc::SYS_io_submit,
    libc::SYS_io_cancel,
    libc::SYS_io_getevents,
    IO_PGETEVENTS,
    libc::SYS_mincore,
    CACHESTAT,
    STATMOUNT,
    LISTMOUNT,
    // Their flags are in memory, where no filter sees them. C libraries fall back to `clone`. A
    // look-up that fails instead of reading the disk tells which names others have looked up;
    // programs fall back to `openat`.
    libc::SYS_clone3,
    libc::SYS_openat2,
];

/// Calls that are the same everywhere and have no name in `libc`.
const CACHESTAT: c_long = 451;
const STATMOUNT: c_long = 457;
const LISTMOUNT: c_long = 458;

#[cfg(target_arch = "x86_64")]
const IO_PGETEVENTS: c_long = 333;
#[cfg(target_arch = "aarch64")]
const IO_PGETEVENTS: c_long = 292;

/// Calls that seem to succeed. What a bot writes is in memory, and is there as long as the bot is;
/// what else these would reach are disks, memory and locks that bots share.
pub(super) const PRETENDED: &[c_long] = &[
    libc::SYS_flock,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
];

/// A read that fails unless the file is in memory tells what others have read; a write that waits
/// for the disk makes it work. Without flags these calls are `preadv` and `pwritev`.
pub(super) const VECTOR_FLAGS: Question = Question {
    argument: 5,
    cases: &[(Case::Is(0), Verdict::Allow)],
    otherwise: Verdict::Refuse(libc::EOPNOTSUPP),
};

/// Programs check addresses with `msync`; only what would write to a disk seems to succeed.
pub(super) const MSYNC: Question = Question {
    argument: 2,
    cases: &[(Case::Has(libc::MS_SYNC.cast_unsigned()), Verdict::Pretend)],
    otherwise: Verdict::Allow,
};

/// A network has streams alone: what waits in sockets of datagrams has no bound of its own.
pub(super) const STREAM: Question = Question {
    argument: 1,
    // Every other kind: datagrams are 2, raw sockets 3, packets in sequence 5.
    cases: &[(Case::Has(0b1110), DENIED)],
    otherwise: Verdict::Ask(&PLAIN_TCP),
};

/// Other protocols have streams too (`SCTP`, `MPTCP`), and buffers that nothing bounds.
const PLAIN_TCP: Question = Question {
    argument: 2,
    cases: &[
        (Case::Is(0), Verdict::Allow),
        (Case::Is(libc::IPPROTO_TCP.cast_unsigned()), Verdict::Allow),
    ],
    otherwise: Verdict::Refuse(libc::EPROTONOSUPPORT),
};

/// Buffers stay as long as they are, and the kernel runs no programs or protocols for a socket. Of the
/// internet's options those are left that programs set and that keep nothing: keys, groups and filters
/// take memory of the kernel that no limit counts.
pub(super) const SETSOCKOPT: Question = Question {
    argument: 1,
    cases: &[
        (Case::Is(libc::SOL_SOCKET.cast_unsigned()), Verdict::Ask(&SOCKET_OPTION)),
        (Case::Is(libc::IPPROTO_TCP.cast_unsigned()), Verdict::Ask(&TCP_OPTION)),
        (Case::Is(libc::IPPROTO_IP.cast_unsigned()), Verdict::Ask(&IP_OPTION)),
        (Case::Is(libc::IPPROTO_IPV6.cast_unsigned()), Verdict::Ask(&IPV6_OPTION)),
    ],
    otherwise: NO_OPTION,
};

/// What is answered of an option that there is not.
const NO_OPTION: Verdict = Verdict::Refuse(libc::ENOPROTOOPT);

const SOCKET_OPTION: Question = Question {
    argument: 2,
    cases: &[
        (Case::Is(libc::SO_SNDBUF.cast_unsigned()), Verdict::Pretend),
        (Case::Is(libc::SO_RCVBUF.cast_unsigned()), Verdict::Pretend),
        (Case::Is(libc::SO_SNDBUFFORCE.cast_unsigned()), DENIED),
        (Case::Is(libc::SO_RCVBUFFORCE.cast_unsigned()), DENIED),
        (Case::Is(libc::SO_ATTACH_FILTER.cast_unsigned()), DENIED),
        (Case::Is(libc::SO_ATTACH_BPF.cast_unsigned()), DENIED),
        (Case::Is(libc::SO_ATTACH_REUSEPORT_CBPF.cast_unsigned()), DENIED),
        (Case::Is(libc::SO_ATTACH_REUSEPORT_EBPF.cast_unsigned()), DENIED),
    ],
    otherwise: Verdict::Allow,
};

const TCP_OPTION: Question = Question {
    argument: 2,
    cases: &[
        (Case::Is(libc::TCP_ULP.cast_unsigned()), DENIED),
        (Case::Is(libc::TCP_NODELAY.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_MAXSEG.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_CORK.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_KEEPIDLE.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_KEEPINTVL.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_KEEPCNT.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_SYNCNT.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_LINGER2.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_DEFER_ACCEPT.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_WINDOW_CLAMP.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_QUICKACK.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_USER_TIMEOUT.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::TCP_NOTSENT_LOWAT.cast_unsigned()), Verdict::Allow),
    ],
    otherwise: NO_OPTION,
};

const IP_OPTION: Question = Question {
    argument: 2,
    cases: &[
        (Case::Is(libc::IP_TOS.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::IP_TTL.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::IP_MTU_DISCOVER.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::IP_BIND_ADDRESS_NO_PORT.cast_unsigned()), Verdict::Allow),
    ],
    otherwise: NO_OPTION,
};

const IPV6_OPTION: Question = Question {
    argument: 2,
    cases: &[
        (Case::Is(libc::IPV6_V6ONLY.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::IPV6_UNICAST_HOPS.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::IPV6_TCLASS.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::IPV6_MTU_DISCOVER.cast_unsigned()), Verdict::Allow),
    ],
    otherwise: NO_OPTION,
};

/// Numbers of a counter that the whole machine moves: what a socket, and its network namespace, are
/// called by.
pub(super) const GETSOCKOPT: Question = Question {
    argument: 1,
    cases: &[(Case::Is(libc::SOL_SOCKET.cast_unsigned()), Verdict::Ask(&SOCKET_COOKIE))],
    otherwise: Verdict::Allow,
};

const SOCKET_COOKIE: Question = Question {
    argument: 2,
    cases: &[
        (Case::Is(libc::SO_COOKIE.cast_unsigned()), Verdict::Refuse(libc::ENOPROTOOPT)),
        (Case::Is(SO_NETNS_COOKIE), Verdict::Refuse(libc::ENOPROTOOPT)),
    ],
    otherwise: Verdict::Allow,
};

const SO_NETNS_COOKIE: u32 = 71;

/// Locks on the system's files would be a channel between bots, and could lock others out. They
/// seem to succeed, since databases in the bot's own directory want them.
pub(super) const FCNTL: Question = Question {
    argument: 1,
    cases: &[
        (Case::Is(libc::F_SETLK.cast_unsigned()), Verdict::Pretend),
        (Case::Is(libc::F_SETLKW.cast_unsigned()), Verdict::Pretend),
        (Case::Is(libc::F_OFD_SETLK.cast_unsigned()), Verdict::Pretend),
        (Case::Is(libc::F_OFD_SETLKW.cast_unsigned()), Verdict::Pretend),
        (Case::Is(10), DENIED), // F_SETSIG: would wake a bot that is stopped by signals
        (Case::Is(libc::F_SETLEASE.cast_unsigned()), DENIED),
        (Case::Is(libc::F_NOTIFY.cast_unsigned()), DENIED),
        // Numbers that stay at a file for all who open it.
        (Case::Is(1036), DENIED), // F_SET_RW_HINT
        (Case::Is(1038), DENIED), // F_SET_FILE_RW_HINT
        (Case::Is(1040), DENIED), // F_SETDELEG
        // Pipe buffers are counted per user, and users are shared where there is only one.
        (Case::Is(libc::F_SETPIPE_SZ.cast_unsigned()), DENIED),
    ],
    otherwise: Verdict::Allow,
};

/// What runtimes ask of a descriptor: whether it is a terminal, and how pipes and sockets are to
/// be read. File systems answer hundreds of other requests through any file that can be read: ext4
/// tells which extents of a file are in memory, and loads them. All of those fail as they do on a
/// file that does not know them, which programs expect.
pub(super) const IOCTL: Question = Question {
    argument: 1,
    cases: &[
        (Case::Is(0x5401), Verdict::Allow),      // TCGETS
        (Case::Is(0x802C_542A), Verdict::Allow), // TCGETS2
        (Case::Is(0x5413), Verdict::Allow),      // TIOCGWINSZ
        (Case::Is(0x540F), Verdict::Allow),      // TIOCGPGRP
        (Case::Is(0x5411), Verdict::Allow),      // TIOCOUTQ, SIOCOUTQ
        (Case::Is(0x541B), Verdict::Allow),      // FIONREAD
        (Case::Is(0x5421), Verdict::Allow),      // FIONBIO
        (Case::Is(0x5450), Verdict::Allow),      // FIONCLEX
        (Case::Is(0x5451), Verdict::Allow),      // FIOCLEX
    ],
    otherwise: Verdict::Refuse(libc::ENOTTY),
};

/// The same where the network is the bot's own: Java lists its interfaces by these.
pub(super) const IOCTL_NETWORK: Question = Question {
    argument: 1,
    cases: &[
        (Case::Is(0x8910), Verdict::Allow), // SIOCGIFNAME
        (Case::Is(0x8912), Verdict::Allow), // SIOCGIFCONF
        (Case::Is(0x8913), Verdict::Allow), // SIOCGIFFLAGS
        (Case::Is(0x8915), Verdict::Allow), // SIOCGIFADDR
        (Case::Is(0x8919), Verdict::Allow), // SIOCGIFBRDADDR
        (Case::Is(0x891B), Verdict::Allow), // SIOCGIFNETMASK
        (Case::Is(0x8921), Verdict::Allow), // SIOCGIFMTU
        (Case::Is(0x8927), Verdict::Allow), // SIOCGIFHWADDR
        (Case::Is(0x8933), Verdict::Allow), // SIOCGIFINDEX
    ],
    otherwise: Verdict::Ask(&IOCTL),
};
