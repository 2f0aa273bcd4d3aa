//! Modules that cost the compiler as much as the limits allow, in binary form.

/// Instructions that are used here.
mod op {
    pub(super) const LOOP: u8 = 0x03;
    pub(super) const BLOCK: u8 = 0x02;
    pub(super) const IF: u8 = 0x04;
    pub(super) const END: u8 = 0x0B;
    pub(super) const BR_IF: u8 = 0x0D;
    pub(super) const BR_TABLE: u8 = 0x0E;
    pub(super) const CALL: u8 = 0x10;
    pub(super) const DROP: u8 = 0x1A;
    pub(super) const GET: u8 = 0x20;
    pub(super) const SET: u8 = 0x21;
    pub(super) const TEE: u8 = 0x22;
    pub(super) const LOAD: u8 = 0x28;
    pub(super) const STORE: u8 = 0x36;
    pub(super) const CONST: u8 = 0x41;
    pub(super) const ADD: u8 = 0x6A;
    pub(super) const EMPTY: u8 = 0x40;
    pub(super) const I32: u8 = 0x7F;
}

/// Encodes an unsigned number in LEB128.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let seven = (number & 0x7F) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(seven);
            return bytes;
        }
        bytes.push(seven | 0x80);
    }
}

/// Encodes an instruction with a number.
fn with(opcode: u8, number: usize) -> Vec<u8> {
    [vec![opcode], leb(number)].concat()
}

fn vector(items: &[Vec<u8>]) -> Vec<u8> {
    [leb(items.len()), items.concat()].concat()
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [vec![id], leb(content.len()), content.to_vec()].concat()
}

/// Encodes a type of 32-bit parameters and results.
fn signature(parameters: usize, results: usize) -> Vec<u8> {
    let of = |count| [leb(count), vec![op::I32; count]].concat();
    [vec![0x60], of(parameters), of(results)].concat()
}

/// Function of type 1, or of another, with so many locals.
pub struct Function {
    pub ty: usize,
    pub locals: usize,
    pub body: Vec<u8>,
}

impl Function {
    pub fn new(locals: usize, body: Vec<u8>) -> Self {
        Self { ty: 1, locals, body }
    }
}

/// Content of a module in addition to that of every program.
#[derive(Default)]
pub struct Module {
    /// Types from 3 on.
    pub types: Vec<Vec<u8>>,
    /// Functions from 1 on; 0 is the program's entry.
    pub functions: Vec<Function>,
    /// Elements of each table.
    pub tables: Vec<usize>,
    /// Bodies of constants that globals begin with.
    pub globals: Vec<Vec<u8>>,
    pub exports_all: bool,
    pub data: usize,
}

impl Module {
    /// Returns the module's bytes: type 0 is the entry's, 1 takes and gives nothing, 2 gives a
    /// number.
    pub fn bytes(&self) -> Vec<u8> {
        let mut types = vec![vec![0x60, 0, 1, 0x7E], signature(0, 0), signature(0, 1)];
        types.extend(self.types.iter().cloned());
        let mut kinds = vec![leb(0)];
        let mut bodies = vec![vec![4, 0, 0x42, 0, op::END]];
        for function in &self.functions {
            kinds.push(leb(function.ty));
            let locals = [vec![1], leb(function.locals), vec![op::I32]].concat();
            let body = [&locals[..], &function.body, &[op::END]].concat();
            bodies.push([leb(body.len()), body].concat());
        }
        let name = |name: &str| [leb(name.len()), name.as_bytes().to_vec()].concat();
        let mut exports =
            vec![[name("memory"), vec![2, 0]].concat(), [name("csd_run"), vec![0, 0]].concat()];
        if self.exports_all {
            let more = 1..=self.functions.len();
            exports.extend(more.map(|i| [name(&format!("f{i}")), vec![0], leb(i)].concat()));
        }
        let tables: Vec<_> =
            self.tables.iter().map(|count| [vec![0x70, 0], leb(*count)].concat()).collect();
        let globals: Vec<_> = self
            .globals
            .iter()
            .map(|body| [&[op::I32, 0][..], body, &[op::END]].concat())
            .collect();
        let mut bytes = b"\0asm\x01\0\0\0".to_vec();
        bytes.extend(section(1, &vector(&types)));
        bytes.extend(section(3, &vector(&kinds)));
        bytes.extend(section(4, &vector(&tables)));
        bytes.extend(section(5, &[1, 0, 1]));
        bytes.extend(section(6, &vector(&globals)));
        bytes.extend(section(7, &vector(&exports)));
        bytes.extend(section(10, &vector(&bodies)));
        if self.data > 0 {
            let data = [vec![0, op::CONST, 0, op::END], leb(self.data), vec![0x5A; self.data]];
            bytes.extend(section(11, &vector(&[data.concat()])));
        }
        bytes
    }
}

/// Returns a module of equal functions.
pub fn of(count: usize, locals: usize, body: &[u8]) -> Module {
    let function = || Function::new(locals, body.to_vec());
    Module { functions: (0..count).map(|_| function()).collect(), ..Module::default() }
}

/// Sets every local from the one before it in an `if`, in turn, and uses them at the end.
pub fn ifs(locals: usize, count: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for i in 0..count {
        let (from, to) = (i % locals, (i + 1) % locals);
        body.extend(with(op::GET, from));
        body.extend([op::IF, op::EMPTY]);
        body.extend([with(op::GET, to), with(op::CONST, i % 64), vec![op::ADD]].concat());
        body.extend(with(op::SET, to));
        body.push(op::END);
    }
    body.extend(uses(locals));
    body
}

/// Loops, one after the other, in each of which another local changes.
fn loops(locals: usize, count: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for i in 0..count {
        let local = i % locals;
        body.extend([op::LOOP, op::EMPTY]);
        body.extend([with(op::GET, local), with(op::CONST, 1), vec![op::ADD]].concat());
        body.extend([with(op::TEE, local), vec![op::BR_IF, 0, op::END]].concat());
    }
    body.extend(uses(locals));
    body
}

/// Loops within loops, with locals that change in the innermost, so many times.
fn nested_loops(locals: usize, depth: usize, count: usize) -> Vec<u8> {
    let mut body = [op::LOOP, op::EMPTY].repeat(depth);
    for local in 0..locals {
        body.extend([with(op::GET, local), with(op::CONST, 1), vec![op::ADD]].concat());
        body.extend(with(op::SET, local));
    }
    for _ in 0..depth {
        body.extend([with(op::GET, 0), vec![op::BR_IF, 0, op::END]].concat());
    }
    [body.repeat(count), uses(locals)].concat()
}

/// Blocks within blocks, with locals that change in each and a way out of each.
fn nested_blocks(locals: usize, depth: usize) -> Vec<u8> {
    let mut body = [op::BLOCK, op::EMPTY].repeat(depth);
    for local in 0..depth {
        body.extend([with(op::GET, local), with(op::CONST, 1), vec![op::ADD]].concat());
        body.extend([with(op::TEE, local), vec![op::BR_IF, 0, op::END]].concat());
    }
    body.extend(uses(locals));
    body
}

/// Stores the sum of all locals.
fn uses(locals: usize) -> Vec<u8> {
    let mut body = with(op::CONST, 0);
    body.extend(with(op::CONST, 0));
    for local in 0..locals {
        body.extend(with(op::GET, local));
        body.push(op::ADD);
    }
    body.extend([op::STORE, 2, 0]);
    body
}

/// Tables of branches out of blocks within blocks.
fn branch_tables(depth: usize, targets: usize, count: usize) -> Vec<u8> {
    let mut table = with(op::BR_TABLE, targets);
    (0..=targets).for_each(|i| table.extend(leb(i % depth)));
    let blocks = [op::BLOCK, op::EMPTY].repeat(depth);
    let one = [blocks, with(op::GET, 0), table, vec![op::END; depth]];
    one.concat().repeat(count)
}

/// Keeps many values on the stack over many blocks.
fn stacked(values: usize, blocks: usize) -> Vec<u8> {
    let value = |i| [with(op::GET, i % 8), vec![op::LOAD, 2, 0]].concat();
    let mut body: Vec<u8> = (0..values).flat_map(value).collect();
    for _ in 0..blocks {
        body.extend(with(op::GET, 0));
        body.extend([op::IF, op::EMPTY, op::CALL, 0, op::DROP, op::END]);
    }
    for i in 0..values {
        body.extend(with(op::SET, i % 8));
    }
    body
}

/// Locals that stay alive over many calls.
fn over_calls(locals: usize, calls: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for local in 0..locals {
        body.extend([with(op::CONST, 4), vec![op::LOAD, 2, 0], with(op::SET, local)].concat());
    }
    body.extend([op::CALL, 0, op::DROP].repeat(calls));
    body.extend(uses(locals));
    body
}

/// Calls of function 1, which takes and gives many numbers.
fn wide_calls(parameters: usize, calls: usize) -> Vec<u8> {
    let call = [[op::GET, 0].repeat(parameters), with(op::CALL, 1), vec![op::DROP; 16]];
    call.concat().repeat(calls)
}

/// Computes one long expression of arithmetic that the optimiser may rearrange.
fn chain(count: usize) -> Vec<u8> {
    const ARITHMETIC: [u8; 6] = [op::ADD, 0x73, 0x6C, 0x74, 0x71, 0x72];
    let mut body = with(op::GET, 0);
    for i in 0..count {
        body.extend([with(op::CONST, i % 60), vec![ARITHMETIC[i % 6]]].concat());
    }
    [body, with(op::SET, 1)].concat()
}

/// Stores, or loads, at places that are all different.
fn memory_accesses(count: usize, stores: bool) -> Vec<u8> {
    let mut body = Vec::new();
    for i in 0..count {
        let (one, other) = (with(op::GET, i % 100), (i * 7) % 100);
        let place = leb(i * 16);
        match stores {
            true => body.extend([one, with(op::GET, other), vec![op::STORE, 0], place].concat()),
            false => body.extend([one, vec![op::LOAD, 0], place, with(op::SET, other)].concat()),
        }
    }
    body
}

fn wide(callers: usize) -> Module {
    let callee = Function { ty: 3, locals: 0, body: [op::GET, 0].repeat(16) };
    let caller = || Function::new(8, wide_calls(64, 800));
    let functions = std::iter::once(callee).chain((0..callers).map(|_| caller())).collect();
    Module { types: vec![signature(64, 16)], functions, ..Module::default() }
}

/// Returns a module of every kind, with functions close to the limits of a function. With a `count`
/// of 5 they are close to the limits of a module.
pub fn all(count: usize) -> Vec<(&'static str, Module)> {
    let divisions = [with(op::GET, 0), with(op::GET, 1), vec![0x6D], with(op::SET, 2)].concat();
    let global = [op::CONST, 1].into_iter().chain([op::CONST, 1, op::ADD].repeat(20)).collect();
    let exported = Module { exports_all: true, ..of(990, 0, &[]) };
    let globals = Module { globals: vec![global; 1000], ..Module::default() };
    vec![
        ("5000 locals, ifs", of(count, 5000, &ifs(5000, 97))),
        ("1000 locals, ifs", of(count, 1000, &ifs(1000, 480))),
        ("200 locals, ifs", of(count, 200, &ifs(200, 2300))),
        ("5000 locals, loops", of(count, 5000, &loops(5000, 38))),
        ("1000 locals, loops", of(count, 1000, &loops(1000, 190))),
        ("200 locals, loops", of(count, 200, &loops(200, 950))),
        ("50 locals, loops", of(count, 50, &loops(50, 3_700))),
        ("600 locals, loops in loops", of(count, 600, &nested_loops(600, 30, 1))),
        ("100 locals, loops in loops", of(count, 100, &nested_loops(100, 30, 6))),
        ("blocks in blocks", of(count, 1500, &nested_blocks(1500, 200))),
        ("long table of branches", of(count, 1, &branch_tables(490, 60_000, 1))),
        ("tables of branches", of(count, 1, &branch_tables(300, 300, 150))),
        ("20,000 operands", of(count, 8, &stacked(20_000, 22))),
        ("1000 operands", of(count, 8, &stacked(1000, 450))),
        ("locals over calls", of(2 * count, 5000, &over_calls(5000, 30_000))),
        ("64 parameters", wide(2 * count)),
        ("arithmetic", of(2 * count, 8, &chain(30_000))),
        ("stores", of(2 * count, 100, &memory_accesses(25_000, true))),
        ("loads", of(2 * count, 100, &memory_accesses(25_000, false))),
        ("divisions", of(2 * count, 8, &divisions.repeat(19_000))),
        ("functions", of(9_999, 0, &[])),
        ("exports", exported),
        ("globals", globals),
        ("data", Module { data: 4_000_000, ..Module::default() }),
    ]
}

/// Returns the memory of this process in a line of `/proc/self/status`, bytes.
pub fn memory(line: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let found = text.lines().find(|found| found.starts_with(line)).unwrap();
    found.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Resets the peak of memory (`VmHWM`) to the memory in use, and returns that.
pub fn begin_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    memory("VmRSS")
}
