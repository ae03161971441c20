//! What bots have in common without being told: pages of the system's files, disks, locks, memory of
//! the network. These rules keep one bot from moving there what another can see, or what no limit
//! counts.

use libc::c_long;

use super::{Action, ArgCheck, Condition, DENIED};

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
pub(super) const VECTOR_FLAGS: ArgCheck = ArgCheck {
    argument: 5,
    cases: &[(Condition::Equals(0), Action::Allow)],
    otherwise: Action::Errno(libc::EOPNOTSUPP),
};

/// Programs check addresses with `msync`; only what would write to a disk seems to succeed.
pub(super) const MSYNC: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[(Condition::HasAny(libc::MS_SYNC.cast_unsigned()), Action::FakeSuccess)],
    otherwise: Action::Allow,
};

/// A network has streams alone: what waits in sockets of datagrams has no bound of its own.
pub(super) const STREAM: ArgCheck = ArgCheck {
    argument: 1,
    // Every other kind: datagrams are 2, raw sockets 3, packets in sequence 5.
    cases: &[(Condition::HasAny(0b1110), DENIED)],
    otherwise: Action::CheckArg(&PLAIN_TCP),
};

/// Other protocols have streams too (`SCTP`, `MPTCP`), and buffers that nothing bounds.
const PLAIN_TCP: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Condition::Equals(0), Action::Allow),
        (Condition::Equals(libc::IPPROTO_TCP.cast_unsigned()), Action::Allow),
    ],
    otherwise: Action::Errno(libc::EPROTONOSUPPORT),
};

/// Buffers stay as long as they are, and the kernel runs no programs or protocols for a socket. Of the
/// internet's options those are left that programs set and that keep nothing: keys, groups and filters
/// take memory of the kernel that no limit counts.
pub(super) const SETSOCKOPT: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[
        (Condition::Equals(libc::SOL_SOCKET.cast_unsigned()), Action::CheckArg(&SOCKET_OPTION)),
        (Condition::Equals(libc::IPPROTO_TCP.cast_unsigned()), Action::CheckArg(&TCP_OPTION)),
        (Condition::Equals(libc::IPPROTO_IP.cast_unsigned()), Action::CheckArg(&IP_OPTION)),
        (Condition::Equals(libc::IPPROTO_IPV6.cast_unsigned()), Action::CheckArg(&IPV6_OPTION)),
    ],
    otherwise: NO_OPTION,
};

/// What is answered of an option that there is not.
const NO_OPTION: Action = Action::Errno(libc::ENOPROTOOPT);

const SOCKET_OPTION: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Condition::Equals(libc::SO_SNDBUF.cast_unsigned()), Action::FakeSuccess),
        (Condition::Equals(libc::SO_RCVBUF.cast_unsigned()), Action::FakeSuccess),
        (Condition::Equals(libc::SO_SNDBUFFORCE.cast_unsigned()), DENIED),
        (Condition::Equals(libc::SO_RCVBUFFORCE.cast_unsigned()), DENIED),
        (Condition::Equals(libc::SO_ATTACH_FILTER.cast_unsigned()), DENIED),
        (Condition::Equals(libc::SO_ATTACH_BPF.cast_unsigned()), DENIED),
        (Condition::Equals(libc::SO_ATTACH_REUSEPORT_CBPF.cast_unsigned()), DENIED),
        (Condition::Equals(libc::SO_ATTACH_REUSEPORT_EBPF.cast_unsigned()), DENIED),
    ],
    otherwise: Action::Allow,
};

const TCP_OPTION: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Condition::Equals(libc::TCP_ULP.cast_unsigned()), DENIED),
        (Condition::Equals(libc::TCP_NODELAY.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_MAXSEG.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_CORK.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_KEEPIDLE.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_KEEPINTVL.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_KEEPCNT.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_SYNCNT.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_LINGER2.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_DEFER_ACCEPT.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_WINDOW_CLAMP.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_QUICKACK.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_USER_TIMEOUT.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::TCP_NOTSENT_LOWAT.cast_unsigned()), Action::Allow),
    ],
    otherwise: NO_OPTION,
};

const IP_OPTION: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Condition::Equals(libc::IP_TOS.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::IP_TTL.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::IP_MTU_DISCOVER.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::IP_BIND_ADDRESS_NO_PORT.cast_unsigned()), Action::Allow),
    ],
    otherwise: NO_OPTION,
};

const IPV6_OPTION: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Condition::Equals(libc::IPV6_V6ONLY.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::IPV6_UNICAST_HOPS.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::IPV6_TCLASS.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::IPV6_MTU_DISCOVER.cast_unsigned()), Action::Allow),
    ],
    otherwise: NO_OPTION,
};

/// Numbers of a counter that the whole machine moves: what a socket, and its network namespace, are
/// called by.
pub(super) const GETSOCKOPT: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[(
        Condition::Equals(libc::SOL_SOCKET.cast_unsigned()),
        Action::CheckArg(&SOCKET_COOKIE),
    )],
    otherwise: Action::Allow,
};

const SOCKET_COOKIE: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Condition::Equals(libc::SO_COOKIE.cast_unsigned()), Action::Errno(libc::ENOPROTOOPT)),
        (Condition::Equals(SO_NETNS_COOKIE), Action::Errno(libc::ENOPROTOOPT)),
    ],
    otherwise: Action::Allow,
};

const SO_NETNS_COOKIE: u32 = 71;

/// Locks on the system's files would be a channel between bots, and could lock others out. They
/// seem to succeed, since databases in the bot's own directory want them.
pub(super) const FCNTL: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[
        (Condition::Equals(libc::F_SETLK.cast_unsigned()), Action::FakeSuccess),
        (Condition::Equals(libc::F_SETLKW.cast_unsigned()), Action::FakeSuccess),
        (Condition::Equals(libc::F_OFD_SETLK.cast_unsigned()), Action::FakeSuccess),
        (Condition::Equals(libc::F_OFD_SETLKW.cast_unsigned()), Action::FakeSuccess),
        (Condition::Equals(10), DENIED), // F_SETSIG: would wake a bot that is stopped by signals
        (Condition::Equals(libc::F_SETLEASE.cast_unsigned()), DENIED),
        (Condition::Equals(libc::F_NOTIFY.cast_unsigned()), DENIED),
        // Numbers that stay at a file for all who open it.
        (Condition::Equals(1036), DENIED), // F_SET_RW_HINT
        (Condition::Equals(1038), DENIED), // F_SET_FILE_RW_HINT
        (Condition::Equals(1040), DENIED), // F_SETDELEG
        // Pipe buffers are counted per user, and users are shared where there is only one.
        (Condition::Equals(libc::F_SETPIPE_SZ.cast_unsigned()), DENIED),
    ],
    otherwise: Action::Allow,
};

/// What runtimes ask of a descriptor: whether it is a terminal, and how pipes and sockets are to
/// be read. File systems answer hundreds of other requests through any file that can be read: ext4
/// tells which extents of a file are in memory, and loads them. All of those fail as they do on a
/// file that does not know them, which programs expect.
pub(super) const IOCTL: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[
        (Condition::Equals(0x5401), Action::Allow),      // TCGETS
        (Condition::Equals(0x802C_542A), Action::Allow), // TCGETS2
        (Condition::Equals(0x5413), Action::Allow),      // TIOCGWINSZ
        (Condition::Equals(0x540F), Action::Allow),      // TIOCGPGRP
        (Condition::Equals(0x5411), Action::Allow),      // TIOCOUTQ, SIOCOUTQ
        (Condition::Equals(0x541B), Action::Allow),      // FIONREAD
        (Condition::Equals(0x5421), Action::Allow),      // FIONBIO
        (Condition::Equals(0x5450), Action::Allow),      // FIONCLEX
        (Condition::Equals(0x5451), Action::Allow),      // FIOCLEX
    ],
    otherwise: Action::Errno(libc::ENOTTY),
};

/// The same where the network is the bot's own: Java lists its interfaces by these.
pub(super) const IOCTL_NETWORK: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[
        (Condition::Equals(0x8910), Action::Allow), // SIOCGIFNAME
        (Condition::Equals(0x8912), Action::Allow), // SIOCGIFCONF
        (Condition::Equals(0x8913), Action::Allow), // SIOCGIFFLAGS
        (Condition::Equals(0x8915), Action::Allow), // SIOCGIFADDR
        (Condition::Equals(0x8919), Action::Allow), // SIOCGIFBRDADDR
        (Condition::Equals(0x891B), Action::Allow), // SIOCGIFNETMASK
        (Condition::Equals(0x8921), Action::Allow), // SIOCGIFMTU
        (Condition::Equals(0x8927), Action::Allow), // SIOCGIFHWADDR
        (Condition::Equals(0x8933), Action::Allow), // SIOCGIFINDEX
    ],
    otherwise: Action::CheckArg(&IOCTL),
};
