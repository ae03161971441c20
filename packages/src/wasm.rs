//! Runs the rules of a package as a WebAssembly module, the same on every machine.
//!
//! # Theory of operation
//!
//! A module is compiled once for a package, and has one instance for each match. An instance has
//! its own memory and no way out of it: it has no files, no network and no clock
//! ([`wasi`]). What it computes depends on the questions alone. Fuel, which counts
//! operations and not time, is the only limit on how long an answer takes, so that every machine
//! comes to the same verdict.
//!
//! The module exports `memory`, `alloc(length) -> address` and
//! `handle(address, length) -> address << 32 | length`. Arbiter writes a question where `alloc`
//! says, and reads the answer where `handle` says.

use std::sync::Arc;

use arbiter_games::Seed;
use wasmi::{
    CompilationMode, Config, EnforcedLimits, Engine, Error, Instance, Linker, Memory, Module,
    Store, StoreLimitsBuilder, TrapCode, TypedFunc,
};

use crate::rules_host::{RulesHost, RulesSession};
use crate::wasi::{self, Log, State};

/// The fuel for the start of a match or for an answer: about as many operations. A processor of
/// 2024 takes about half a second for them.
const FUEL: u64 = 1_000_000_000;

/// Maximum size of the memory of an instance, in bytes.
const MAX_MEMORY: usize = 256 << 20;
/// Maximum number of elements of a table.
const MAX_TABLE: usize = 1 << 20;
/// Maximum height of the stack, in bytes.
const MAX_STACK: usize = 1 << 20;
/// Maximum depth of calls.
const MAX_DEPTH: usize = 10_000;

/// Maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 4 << 20;

/// The compiled rules of a package.
pub struct WasmRules {
    module: Module,
    linker: Linker<State>,
}

impl std::fmt::Debug for WasmRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WasmRules")
    }
}

impl WasmRules {
    /// Compiles the rules.
    ///
    /// # Errors
    /// Why these bytes are not a module that can run.
    pub fn compile(bytes: &[u8]) -> Result<Arc<Self>, String> {
        let mut config = Config::default();
        config
            .consume_fuel(true)
            // Fuel must not depend on what another match has compiled before.
            .compilation_mode(CompilationMode::Eager)
            .enforced_limits(EnforcedLimits::strict())
            .wasm_multi_memory(false)
            .wasm_custom_page_sizes(false)
            .set_max_recursion_depth(MAX_DEPTH)
            .set_max_stack_height(MAX_STACK);
        let engine = Engine::new(&config);
        let module = Module::new(&engine, bytes).map_err(|error| error.to_string())?;
        let mut linker = Linker::new(&engine);
        wasi::define(&mut linker, &module).map_err(|error| error.to_string())?;
        Ok(Arc::new(Self { module, linker }))
    }
}

impl RulesHost for WasmRules {
    fn begin(&self, seed: Seed) -> Result<Box<dyn RulesSession>, String> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(MAX_MEMORY)
            .table_elements(MAX_TABLE)
            .instances(1)
            .memories(1)
            .build();
        let state = State { limits, log: Log::new(seed) };
        let mut store = Store::new(self.module.engine(), state);
        store.limiter(|state| &mut state.limits);
        let failed = |store: &Store<State>, error: &Error| describe(store, error);
        store.set_fuel(FUEL).map_err(|error| failed(&store, &error))?;
        let instance = self.linker.instantiate_and_start(&mut store, &self.module);
        let instance = instance.map_err(|error| failed(&store, &error))?;
        if let Ok(initialize) = instance.get_typed_func::<(), ()>(&store, "_initialize") {
            initialize.call(&mut store, ()).map_err(|error| failed(&store, &error))?;
        }
        let (memory, alloc, handle) = exports(instance, &store)?;
        Ok(Box::new(WasmSession { store, memory, alloc, handle }))
    }
}

type Exports = (Memory, TypedFunc<u32, u32>, TypedFunc<(u32, u32), u64>);

fn exports(instance: Instance, store: &Store<State>) -> Result<Exports, String> {
    let missing = |what: &str| format!("the module does not export {what}");
    let memory = instance.get_memory(store, "memory").ok_or_else(|| missing("`memory`"))?;
    let alloc = instance
        .get_typed_func(store, "alloc")
        .map_err(|_| missing("`alloc(length: i32) -> i32`"))?;
    let handle = instance
        .get_typed_func(store, "handle")
        .map_err(|_| missing("`handle(address: i32, length: i32) -> i64`"))?;
    Ok((memory, alloc, handle))
}

/// The rules of one match.
struct WasmSession {
    store: Store<State>,
    memory: Memory,
    alloc: TypedFunc<u32, u32>,
    handle: TypedFunc<(u32, u32), u64>,
}

impl std::fmt::Debug for WasmSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WasmSession")
    }
}

impl WasmSession {
    fn call(&mut self, question: &str) -> Result<Vec<u8>, Error> {
        self.store.set_fuel(FUEL)?;
        let length = u32::try_from(question.len()).map_err(|_| Error::new("a long question"))?;
        let address = self.alloc.call(&mut self.store, length)?;
        self.memory
            .write(&mut self.store, address as usize, question.as_bytes())
            .map_err(|_| Error::new("`alloc` returned an address outside of the memory"))?;
        let answer = self.handle.call(&mut self.store, (address, length))?;
        let address = (answer >> 32) as usize;
        let length = (answer & 0xffff_ffff) as usize;
        if length > MAX_ANSWER {
            return Err(Error::new(format!(
                "an answer of {length} bytes; the maximum is {MAX_ANSWER}"
            )));
        }
        let memory = self.memory.data(&self.store);
        let text = address.checked_add(length).and_then(|end| memory.get(address..end));
        let outside = || Error::new("`handle` returned an answer outside of the memory");
        text.map(<[u8]>::to_vec).ok_or_else(outside)
    }
}

impl RulesSession for WasmSession {
    fn ask(&mut self, question: &str) -> Result<String, String> {
        let answer = self.call(question).map_err(|error| describe(&self.store, &error))?;
        String::from_utf8(answer).map_err(|_| "their answer is not UTF-8".to_owned())
    }
}

/// How the rules failed, with the end of what they wrote.
fn describe(store: &Store<State>, error: &Error) -> String {
    let cause = match (error.as_trap_code(), error.i32_exit_status()) {
        (Some(TrapCode::OutOfFuel), _) => {
            format!("they took more than {FUEL} operations for an answer")
        }
        (_, Some(status)) => format!("they exited with status {status}"),
        _ => error.to_string(),
    };
    match store.data().log.text() {
        text if text.is_empty() => cause,
        text => format!("{cause}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The module of a text in the WebAssembly text format.
    fn rules(text: &str) -> Arc<WasmRules> {
        WasmRules::compile(&wat::parse_str(text).unwrap()).unwrap()
    }

    /// What such rules answer to `question`. `handle` has this body.
    fn answer(body: &str, question: &str) -> Result<String, String> {
        let text = format!(
            r#"(module
                (import "wasi_snapshot_preview1" "random_get"
                    (func $random (param i32 i32) (result i32)))
                (import "wasi_snapshot_preview1" "fd_write"
                    (func $write (param i32 i32 i32 i32) (result i32)))
                (import "wasi_snapshot_preview1" "path_open"
                    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
                (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
                (memory (export "memory") 1)
                (data (i32.const 16) "\40\00\00\00\04\00\00\00oops")
                (data (i32.const 64) "ouch")
                (func $deep (param i32) (result i32) (call $deep (local.get 0)))
                (func (export "alloc") (param i32) (result i32) (i32.const 1024))
                (func (export "handle") (param $address i32) (param $length i32) (result i64)
                    {body}))"#
        );
        rules(&text).begin(Seed([7; 32]))?.ask(question)
    }

    const ECHO: &str = "(i64.or (i64.shl (i64.extend_i32_u (local.get $address)) (i64.const 32)) \
                        (i64.extend_i32_u (local.get $length)))";

    #[test]
    fn rules_answer_from_their_memory() {
        assert_eq!(answer(ECHO, r#"{"legal":1}"#), Ok(r#"{"legal":1}"#.to_owned()));
    }

    #[test]
    fn failures_name_their_cause() {
        let far = "(i64.const 0x7fffffff00000004)";
        let long = "(i64.const 0x0000000000500000)";
        let says = "(drop (call $write (i32.const 2) (i32.const 16) (i32.const 1) (i32.const 0))) \
                    (unreachable)";
        for (body, cause) in [
            ("(loop (br 0)) (i64.const 0)", "more than 1000000000 operations"),
            ("(unreachable)", "unreachable"),
            ("(drop (call $deep (i32.const 1))) (i64.const 0)", "stack"),
            ("(call $exit (i32.const 3)) (i64.const 0)", "exited with status 3"),
            (far, "outside of the memory"),
            (long, "an answer of 5242880 bytes"),
            (says, "unreachable` instruction executed: ouch"),
        ] {
            let error = answer(body, "{}").unwrap_err();
            assert!(error.contains(cause), "{body}: {error}");
        }
        let error = answer(ECHO, &"x".repeat(70_000)).unwrap_err();
        assert!(error.contains("`alloc` returned an address outside"), "{error}");
    }

    #[test]
    fn chance_comes_from_the_seed_and_files_do_not_exist() {
        let random = "(drop (call $random (i32.const 1024) (i32.const 2))) \
                      (i32.store16 (i32.const 1024) (i32.or (i32.const 0x4040) \
                      (i32.and (i32.const 0x0f0f) (i32.load16_u (i32.const 1024))))) \
                      (i64.const 0x0000040000000002)";
        let first = answer(random, "{}").unwrap();
        assert_eq!(answer(random, "{}").unwrap(), first);
        let open = "(i32.store (i32.const 1024) (i32.add (i32.const 0) (call $open \
                    (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) \
                    (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 0)))) \
                    (i64.const 0x0000040000000001)";
        assert_eq!(answer(open, "{}").unwrap(), "4", "ENOSYS is 52, the code of `4`");
    }

    #[test]
    fn modules_that_cannot_run_are_refused() {
        let compile = |bytes: &[u8]| WasmRules::compile(bytes).unwrap_err();
        assert!(!compile(b"not a module").is_empty());
        let import = r#"(module (import "env" "now" (func)))"#;
        let error = WasmRules::compile(&wat::parse_str(import).unwrap()).unwrap_err();
        assert!(error.contains("env") && error.contains("now"), "{error}");
        let empty = rules("(module)").begin(Seed([0; 32])).unwrap_err();
        assert!(empty.contains("does not export `memory`"), "{empty}");
        let large = r#"(module (memory (export "memory") 40000))"#;
        assert!(rules(large).begin(Seed([0; 32])).is_err());
    }
}
