//! Rules for resources that all bots share: the page cache of system files, disks, locks, network
//! buffers. The rules stop bots from signalling each other through them, and from using resources
//! that no limit counts.

use libc::c_long;

use super::{Action, Arg, ArgCheck, DENY};

/// Calls that return `ENOSYS`, so that programs fall back. They reveal memory and mounts that bots
/// share, or make requests that the machine counts globally.
pub(super) const HIDDEN_CALLS: &[c_long] = &[
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
    // Their flags are in memory, which a filter cannot read. C libraries then use `clone` instead.
    // A cached-only look-up reveals which names others have looked up. Programs then use `openat`.
    libc::SYS_clone3,
    libc::SYS_openat2,
];

/// Calls with the same number on all architectures and no name in `libc`.
const CACHESTAT: c_long = 451;
const STATMOUNT: c_long = 457;
const LISTMOUNT: c_long = 458;

#[cfg(target_arch = "x86_64")]
const IO_PGETEVENTS: c_long = 333;
#[cfg(target_arch = "aarch64")]
const IO_PGETEVENTS: c_long = 292;

/// Calls that return 0 and do nothing. A bot's files are in memory as long as the bot runs, so no
/// data is lost. If the kernel executed these calls, they would affect disks, memory and locks that
/// bots share.
pub(super) const FAKED_CALLS: &[c_long] = &[
    libc::SYS_flock,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
];

/// A cached-only read reveals what others have read. A synchronous write keeps the disk busy.
/// Without flags these calls are `preadv` and `pwritev`.
pub(super) const VECTOR_FLAGS: ArgCheck = ArgCheck {
    argument: 5,
    cases: &[(Arg::Equals(0), Action::Allow)],
    otherwise: Action::Errno(libc::EOPNOTSUPP),
};

/// Programs check addresses with `msync`. Only synchronous writes are faked.
pub(super) const MSYNC: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[(Arg::HasAny(libc::MS_SYNC.cast_unsigned()), Action::FakeSuccess)],
    otherwise: Action::Allow,
};

/// Stream sockets only: the buffers of datagram sockets are not bounded.
pub(super) const STREAM_SOCKET: ArgCheck = ArgCheck {
    argument: 1,
    // Every other kind: datagrams are 2, raw sockets 3, packets in sequence 5.
    cases: &[(Arg::HasAny(0b1110), DENY)],
    otherwise: Action::CheckArg(&PLAIN_TCP),
};

/// TCP only: other stream protocols (`SCTP`, `MPTCP`) have unbounded buffers.
const PLAIN_TCP: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Arg::Equals(0), Action::Allow),
        (Arg::Equals(libc::IPPROTO_TCP.cast_unsigned()), Action::Allow),
    ],
    otherwise: Action::Errno(libc::EPROTONOSUPPORT),
};

/// Denies changes to the size of socket buffers, BPF programs and upper-layer protocols. Allows
/// common IP and TCP options that need no memory: keys, groups and filters use kernel memory that
/// no limit counts.
pub(super) const SETSOCKOPT: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[
        (Arg::Equals(libc::SOL_SOCKET.cast_unsigned()), Action::CheckArg(&SOCKET_OPTION)),
        (Arg::Equals(libc::IPPROTO_TCP.cast_unsigned()), Action::CheckArg(&TCP_OPTION)),
        (Arg::Equals(libc::IPPROTO_IP.cast_unsigned()), Action::CheckArg(&IP_OPTION)),
        (Arg::Equals(libc::IPPROTO_IPV6.cast_unsigned()), Action::CheckArg(&IPV6_OPTION)),
    ],
    otherwise: NO_OPTION,
};

/// The error for an option that does not exist.
const NO_OPTION: Action = Action::Errno(libc::ENOPROTOOPT);

const SOCKET_OPTION: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Arg::Equals(libc::SO_SNDBUF.cast_unsigned()), Action::FakeSuccess),
        (Arg::Equals(libc::SO_RCVBUF.cast_unsigned()), Action::FakeSuccess),
        (Arg::Equals(libc::SO_SNDBUFFORCE.cast_unsigned()), DENY),
        (Arg::Equals(libc::SO_RCVBUFFORCE.cast_unsigned()), DENY),
        (Arg::Equals(libc::SO_ATTACH_FILTER.cast_unsigned()), DENY),
        (Arg::Equals(libc::SO_ATTACH_BPF.cast_unsigned()), DENY),
        (Arg::Equals(libc::SO_ATTACH_REUSEPORT_CBPF.cast_unsigned()), DENY),
        (Arg::Equals(libc::SO_ATTACH_REUSEPORT_EBPF.cast_unsigned()), DENY),
    ],
    otherwise: Action::Allow,
};

const TCP_OPTION: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Arg::Equals(libc::TCP_ULP.cast_unsigned()), DENY),
        (Arg::Equals(libc::TCP_NODELAY.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_MAXSEG.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_CORK.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_KEEPIDLE.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_KEEPINTVL.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_KEEPCNT.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_SYNCNT.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_LINGER2.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_DEFER_ACCEPT.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_WINDOW_CLAMP.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_QUICKACK.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_USER_TIMEOUT.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::TCP_NOTSENT_LOWAT.cast_unsigned()), Action::Allow),
    ],
    otherwise: NO_OPTION,
};

const IP_OPTION: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Arg::Equals(libc::IP_TOS.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::IP_TTL.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::IP_MTU_DISCOVER.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::IP_BIND_ADDRESS_NO_PORT.cast_unsigned()), Action::Allow),
    ],
    otherwise: NO_OPTION,
};

const IPV6_OPTION: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Arg::Equals(libc::IPV6_V6ONLY.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::IPV6_UNICAST_HOPS.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::IPV6_TCLASS.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::IPV6_MTU_DISCOVER.cast_unsigned()), Action::Allow),
    ],
    otherwise: NO_OPTION,
};

/// Denies the cookies of a socket and of its network namespace: they come from global counters.
pub(super) const GETSOCKOPT: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[(Arg::Equals(libc::SOL_SOCKET.cast_unsigned()), Action::CheckArg(&SOCKET_COOKIE))],
    otherwise: Action::Allow,
};

const SOCKET_COOKIE: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Arg::Equals(libc::SO_COOKIE.cast_unsigned()), Action::Errno(libc::ENOPROTOOPT)),
        (Arg::Equals(SO_NETNS_COOKIE), Action::Errno(libc::ENOPROTOOPT)),
    ],
    otherwise: Action::Allow,
};

const SO_NETNS_COOKIE: u32 = 71;

/// Locks on system files would be a channel between bots, and could block other programs. Lock
/// calls return 0 and do nothing, because databases in the bot's own directory need them.
pub(super) const FCNTL: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[
        (Arg::Equals(libc::F_SETLK.cast_unsigned()), Action::FakeSuccess),
        (Arg::Equals(libc::F_SETLKW.cast_unsigned()), Action::FakeSuccess),
        (Arg::Equals(libc::F_OFD_SETLK.cast_unsigned()), Action::FakeSuccess),
        (Arg::Equals(libc::F_OFD_SETLKW.cast_unsigned()), Action::FakeSuccess),
        (Arg::Equals(10), DENY), // F_SETSIG: wakes a bot that is stopped by signals
        (Arg::Equals(libc::F_SETLEASE.cast_unsigned()), DENY),
        (Arg::Equals(libc::F_NOTIFY.cast_unsigned()), DENY),
        // The kernel stores these values with the file, for all programs that open it.
        (Arg::Equals(1036), DENY), // F_SET_RW_HINT
        (Arg::Equals(1038), DENY), // F_SET_FILE_RW_HINT
        (Arg::Equals(1040), DENY), // F_SETDELEG
        // Pipe buffers are counted per user, and several bots may have the same user.
        (Arg::Equals(libc::F_SETPIPE_SZ.cast_unsigned()), DENY),
    ],
    otherwise: Action::Allow,
};

/// Allows the requests that runtimes use: whether a descriptor is a terminal, and modes of pipes
/// and sockets. File systems support hundreds of others for any readable file: ext4 reports which
/// extents of a file are cached, and loads them. Those return `ENOTTY`, as on a file that does not
/// support them. Programs expect that.
pub(super) const IOCTL: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[
        (Arg::Equals(0x5401), Action::Allow),      // TCGETS
        (Arg::Equals(0x802C_542A), Action::Allow), // TCGETS2
        (Arg::Equals(0x5413), Action::Allow),      // TIOCGWINSZ
        (Arg::Equals(0x540F), Action::Allow),      // TIOCGPGRP
        (Arg::Equals(0x5411), Action::Allow),      // TIOCOUTQ, SIOCOUTQ
        (Arg::Equals(0x541B), Action::Allow),      // FIONREAD
        (Arg::Equals(0x5421), Action::Allow),      // FIONBIO
        (Arg::Equals(0x5450), Action::Allow),      // FIONCLEX
        (Arg::Equals(0x5451), Action::Allow),      // FIOCLEX
    ],
    otherwise: Action::Errno(libc::ENOTTY),
};

/// The same for a bot with its own network. Java lists network interfaces with these requests.
pub(super) const IOCTL_NETWORK: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[
        (Arg::Equals(0x8910), Action::Allow), // SIOCGIFNAME
        (Arg::Equals(0x8912), Action::Allow), // SIOCGIFCONF
        (Arg::Equals(0x8913), Action::Allow), // SIOCGIFFLAGS
        (Arg::Equals(0x8915), Action::Allow), // SIOCGIFADDR
        (Arg::Equals(0x8919), Action::Allow), // SIOCGIFBRDADDR
        (Arg::Equals(0x891B), Action::Allow), // SIOCGIFNETMASK
        (Arg::Equals(0x8921), Action::Allow), // SIOCGIFMTU
        (Arg::Equals(0x8927), Action::Allow), // SIOCGIFHWADDR
        (Arg::Equals(0x8933), Action::Allow), // SIOCGIFINDEX
    ],
    otherwise: Action::CheckArg(&IOCTL),
};
