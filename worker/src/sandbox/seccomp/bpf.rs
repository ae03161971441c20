//! Verdicts as instructions that the kernel runs: see the theory of operation above.

use libc::sock_filter;

use super::{Action, ArgCheck, Condition};

/// The value of `AUDIT_ARCH` that this machine's own calls carry.
#[cfg(target_arch = "x86_64")]
pub(super) const MACHINE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
pub(super) const MACHINE: u32 = 0xC000_00B7;

/// Offsets in the kernel's `seccomp_data`: the number, the machine, and the arguments.
pub(super) const NUMBER: u32 = 0;
pub(super) const ARCHITECTURE: u32 = 4;
pub(super) const ARGUMENTS: u32 = 16;

/// Codes of the instructions used.
pub(super) const LOAD: u16 = 0x20;
pub(super) const RETURN: u16 = 0x06;
pub(super) const JUMP: u16 = 0x05;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const JUMP_IF_AT_LEAST: u16 = 0x35;
pub(super) const JUMP_IF_SET: u16 = 0x45;

pub(super) fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

pub(super) fn give(value: u32) -> sock_filter {
    instruction(RETURN, 0, 0, value)
}

impl Action {
    /// Instructions that end with this verdict.
    fn assemble(self, program: &mut Vec<sock_filter>) {
        match self {
            Self::Allow => program.push(give(libc::SECCOMP_RET_ALLOW)),
            Self::Errno(error) => {
                program.push(give(libc::SECCOMP_RET_ERRNO | error.cast_unsigned()));
            }
            Self::FakeSuccess => program.push(give(libc::SECCOMP_RET_ERRNO)),
            Self::CheckArg(question) | Self::CheckArgUpper(question) => {
                let ArgCheck { argument, cases, otherwise } = question;
                let half = if matches!(self, Self::CheckArg(_)) { 0 } else { 4 };
                program.push(instruction(LOAD, 0, 0, ARGUMENTS + 8 * argument + half));
                for (case, verdict) in *cases {
                    let (code, value) = match case {
                        Condition::Equals(value) => (JUMP_IF_EQUAL, *value),
                        Condition::HasAny(bits) => (JUMP_IF_SET, *bits),
                    };
                    let mut decided = Vec::new();
                    verdict.assemble(&mut decided);
                    let over = u8::try_from(decided.len()).expect("a question is short");
                    program.push(instruction(code, 0, over, value));
                    program.append(&mut decided);
                }
                otherwise.assemble(program);
            }
        }
    }
}

/// A binary search over spans of numbers, each from its first number to the next span's.
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
