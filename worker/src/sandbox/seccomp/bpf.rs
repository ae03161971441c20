//! Actions as BPF instructions: see the theory of operation in the parent module.

use libc::sock_filter;

use super::{Action, Arg, ArgCheck};

/// The `AUDIT_ARCH` value of this machine's own calls.
#[cfg(target_arch = "x86_64")]
pub(super) const MACHINE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
pub(super) const MACHINE: u32 = 0xC000_00B7;

/// Offsets in the kernel's `seccomp_data`: the number, the machine, and the arguments.
pub(super) const NUMBER: u32 = 0;
pub(super) const ARCHITECTURE: u32 = 4;
pub(super) const ARGUMENTS: u32 = 16;

/// Opcodes of the instructions.
pub(super) const LOAD: u16 = 0x20;
pub(super) const RETURN: u16 = 0x06;
pub(super) const JUMP: u16 = 0x05;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const JUMP_IF_AT_LEAST: u16 = 0x35;
pub(super) const JUMP_IF_SET: u16 = 0x45;

pub(super) fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

pub(super) fn return_value(value: u32) -> sock_filter {
    instruction(RETURN, 0, 0, value)
}

impl Action {
    /// Appends instructions that end with this action.
    fn assemble(self, program: &mut Vec<sock_filter>) {
        match self {
            Self::Allow => program.push(return_value(libc::SECCOMP_RET_ALLOW)),
            Self::Errno(error) => {
                program.push(return_value(libc::SECCOMP_RET_ERRNO | error.cast_unsigned()));
            }
            Self::FakeSuccess => program.push(return_value(libc::SECCOMP_RET_ERRNO)),
            Self::CheckArg(check) | Self::CheckArgUpper(check) => {
                let ArgCheck { argument, cases, otherwise } = check;
                let half = if matches!(self, Self::CheckArg(_)) { 0 } else { 4 };
                program.push(instruction(LOAD, 0, 0, ARGUMENTS + 8 * argument + half));
                for (case, action) in *cases {
                    let (code, value) = match case {
                        Arg::Equals(value) => (JUMP_IF_EQUAL, *value),
                        Arg::HasAny(bits) => (JUMP_IF_SET, *bits),
                    };
                    let mut branch = Vec::new();
                    action.assemble(&mut branch);
                    let jump = u8::try_from(branch.len()).expect("a check has few instructions");
                    program.push(instruction(code, 0, jump, value));
                    program.append(&mut branch);
                }
                otherwise.assemble(program);
            }
        }
    }
}

/// Appends a binary search over spans of call numbers. A span ends where the next one begins.
pub(super) fn search(spans: &[(u32, Action)], program: &mut Vec<sock_filter>) {
    let (lower, upper) = spans.split_at(spans.len() / 2);
    if lower.is_empty() {
        upper[0].1.assemble(program);
        return;
    }
    program.push(instruction(JUMP_IF_AT_LEAST, 0, 1, upper[0].0));
    let jump = program.len();
    program.push(instruction(JUMP, 0, 0, 0));
    search(lower, program);
    program[jump].k = u32::try_from(program.len() - jump - 1).expect("a filter is short");
    search(upper, program);
}
