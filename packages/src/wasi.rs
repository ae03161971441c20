//! What WebAssembly rules find of WASI preview 1, the system interface that compilers expect.
//!
//! Languages link their start-up code and libraries against this interface even if a program needs
//! nothing of it. There is nothing behind it: clocks stand at 0, there are no files, arguments or
//! variables, and random numbers come from the seed of the match. What is written to standard
//! output and error is kept for messages. Every other function returns "not supported".

use arbiter_games::{Dice, Seed};
use wasmi::{
    Caller, Error, ExternType, FuncType, Linker, Memory, Module, StoreLimits, Val, ValType,
};

/// The name of the interface.
const WASI: &str = "wasi_snapshot_preview1";

/// Codes of errors.
const SUCCESS: i32 = 0;
const BAD_FILE: i32 = 8;
const NOT_SUPPORTED: i32 = 52;

/// The stream of random numbers. Rules draw from the seed itself as they like.
const STREAM: u64 = 0x7761_7369;

/// Maximum length of the kept output, in bytes.
const MAX_LOG: usize = 400;

/// Maximum number of random bytes that a call draws.
const MAX_RANDOM: u32 = 1 << 20;

/// What belongs to an instance.
pub(crate) struct State {
    pub(crate) limits: StoreLimits,
    pub(crate) log: Log,
}

/// The effects of an instance: its output and its random numbers.
#[derive(Debug)]
pub(crate) struct Log {
    output: Vec<u8>,
    dice: Dice,
}

impl Log {
    pub(crate) fn new(seed: Seed) -> Self {
        Self { output: Vec::new(), dice: seed.dice(STREAM) }
    }

    /// The end of the output, in one line.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).trim().replace('\n', " | ")
    }

    fn write(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        let surplus = self.output.len().saturating_sub(MAX_LOG);
        self.output.drain(..surplus);
    }
}

/// Defines the functions that the module imports.
///
/// # Errors
/// If it imports anything else.
pub(crate) fn define(linker: &mut Linker<State>, module: &Module) -> Result<(), Error> {
    for import in module.imports() {
        let from = import.module();
        let name = import.name();
        let ExternType::Func(kind) = import.ty() else {
            return Err(not_available(from, name));
        };
        if from != WASI {
            return Err(not_available(from, name));
        }
        // A module may import a function twice.
        linker.allow_shadowing(true);
        match name {
            "fd_write" => linker.func_wrap(WASI, name, fd_write)?,
            "random_get" => linker.func_wrap(WASI, name, random_get)?,
            "clock_time_get" => linker.func_wrap(WASI, name, clock_time_get)?,
            "args_sizes_get" | "environ_sizes_get" => linker.func_wrap(WASI, name, no_texts)?,
            "args_get" | "environ_get" => linker.func_wrap(WASI, name, |_: u32, _: u32| SUCCESS)?,
            // No directory is open.
            "fd_prestat_get" => linker.func_wrap(WASI, name, |_: u32, _: u32| BAD_FILE)?,
            "sched_yield" => linker.func_wrap(WASI, name, || SUCCESS)?,
            "proc_exit" => linker.func_wrap(WASI, name, proc_exit)?,
            _ => linker.func_new(WASI, name, kind.clone(), unsupported(kind))?,
        };
    }
    Ok(())
}

fn not_available(module: &str, name: &str) -> Error {
    Error::new(format!(
        "the module imports `{name}` of `{module}`; rules may import functions of {WASI} only"
    ))
}

/// A function that returns "not supported", if it returns anything.
fn unsupported(
    kind: &FuncType,
) -> impl Fn(Caller<'_, State>, &[Val], &mut [Val]) -> Result<(), Error> + Send + Sync + 'static {
    let is_code = kind.results() == [ValType::I32];
    move |_, _, results| {
        if is_code {
            results[0] = Val::I32(NOT_SUPPORTED);
        }
        Ok(())
    }
}

fn memory(caller: &Caller<'_, State>) -> Result<Memory, Error> {
    let memory = caller.get_export("memory").and_then(wasmi::Extern::into_memory);
    memory.ok_or_else(|| Error::new("the module does not export `memory`"))
}

/// Reads a number at an address.
fn read(caller: &Caller<'_, State>, memory: Memory, address: u32) -> Result<u32, Error> {
    let mut bytes = [0; 4];
    memory.read(caller, address as usize, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Keeps what is written to standard output and error.
fn fd_write(
    mut caller: Caller<'_, State>,
    file: u32,
    vectors: u32,
    count: u32,
    written: u32,
) -> Result<i32, Error> {
    if ![1, 2].contains(&file) {
        return Ok(BAD_FILE);
    }
    let memory = memory(&caller)?;
    let mut total = 0_u32;
    for index in 0..count.min(64) {
        let vector = vectors.wrapping_add(8 * index);
        let address = read(&caller, memory, vector)?;
        let length = read(&caller, memory, vector.wrapping_add(4))?;
        let (bytes, state) = memory.data_and_store_mut(&mut caller);
        let start = address as usize;
        let bytes = start.checked_add(length as usize).and_then(|end| bytes.get(start..end));
        let bytes = bytes.ok_or_else(|| Error::new("a text outside of the memory"))?;
        state.log.write(&bytes[bytes.len().saturating_sub(MAX_LOG)..]);
        total = total.wrapping_add(length);
    }
    memory.write(&mut caller, written as usize, &total.to_le_bytes())?;
    Ok(SUCCESS)
}

/// Fills a buffer with random numbers of the match.
fn random_get(mut caller: Caller<'_, State>, address: u32, length: u32) -> Result<i32, Error> {
    if length > MAX_RANDOM {
        return Err(Error::new(format!(
            "{length} random bytes at once; the maximum is {MAX_RANDOM}"
        )));
    }
    let memory = memory(&caller)?;
    let dice = &mut caller.data_mut().log.dice;
    let bytes: Vec<_> = (0..length).map(|_| dice.next_u32().to_le_bytes()[0]).collect();
    memory.write(&mut caller, address as usize, &bytes)?;
    Ok(SUCCESS)
}

/// Every clock stands at 0.
fn clock_time_get(
    mut caller: Caller<'_, State>,
    _clock: u32,
    _precision: u64,
    address: u32,
) -> Result<i32, Error> {
    memory(&caller)?.write(&mut caller, address as usize, &0_u64.to_le_bytes())?;
    Ok(SUCCESS)
}

/// There are no arguments and no variables.
fn no_texts(mut caller: Caller<'_, State>, count: u32, length: u32) -> Result<i32, Error> {
    let memory = memory(&caller)?;
    for address in [count, length] {
        memory.write(&mut caller, address as usize, &0_u32.to_le_bytes())?;
    }
    Ok(SUCCESS)
}

fn proc_exit(status: i32) -> Result<(), Error> {
    Err(Error::i32_exit(status))
}
