//! Instructions as compilers write them (AT&T syntax, x86-64), as far as they concern memory.

/// The tracked registers, in the order of their numbers.
const NAMES: [[&str; 4]; 16] = [
    ["rax", "eax", "ax", "al"],
    ["rcx", "ecx", "cx", "cl"],
    ["rdx", "edx", "dx", "dl"],
    ["rbx", "ebx", "bx", "bl"],
    ["rsp", "esp", "sp", "spl"],
    ["rbp", "ebp", "bp", "bpl"],
    ["rsi", "esi", "si", "sil"],
    ["rdi", "edi", "di", "dil"],
    ["r8", "r8d", "r8w", "r8b"],
    ["r9", "r9d", "r9w", "r9b"],
    ["r10", "r10d", "r10w", "r10b"],
    ["r11", "r11d", "r11w", "r11b"],
    ["r12", "r12d", "r12w", "r12b"],
    ["r13", "r13d", "r13w", "r13b"],
    ["r14", "r14d", "r14w", "r14b"],
    ["r15", "r15d", "r15w", "r15b"],
];

pub(super) const RAX: usize = 0;
pub(super) const RCX: usize = 1;
pub(super) const RDX: usize = 2;
pub(super) const RSP: usize = 4;
pub(super) const RBP: usize = 5;
pub(super) const RSI: usize = 6;
pub(super) const RDI: usize = 7;
/// Registers that a call may change.
pub(super) const CHANGED_BY_CALLS: [usize; 9] = [RAX, RCX, RDX, RSI, RDI, 8, 9, 10, 11];
/// Registers that pass arguments to a call; the tenth is that of nested functions.
pub(super) const ARGUMENTS: [usize; 7] = [RDI, RSI, RDX, RCX, 8, 9, 10];

/// One instruction, without its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction<'a> {
    /// `rep`, `lock` and the like.
    pub(super) prefix: &'a str,
    pub(super) mnemonic: &'a str,
    pub(super) operands: Vec<Operand<'a>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operand<'a> {
    /// A general register and its size.
    Register(usize, u64),
    /// A register of another kind, by name.
    Other(&'a str),
    Immediate(&'a str),
    Memory(Memory<'a>),
    /// Where a direct jump or call goes.
    Target(&'a str),
}

/// A place in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Memory<'a> {
    /// `%fs` and the like.
    pub(super) segment: &'a str,
    pub(super) displacement: &'a str,
    pub(super) base: Option<usize>,
    pub(super) is_relative: bool,
    pub(super) index: Option<usize>,
    pub(super) scale: i64,
}

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) size: u64,
}

/// A register of the general kind and its size.
pub(super) fn register(name: &str) -> Option<(usize, u64)> {
    let find = |(number, names): (usize, &[&str; 4])| {
        names.iter().position(|n| *n == name).map(|p| (number, 8 >> p))
    };
    NAMES.iter().enumerate().find_map(find).or(match name {
        "ah" => Some((RAX, 1)),
        "bh" => Some((3, 1)),
        "ch" => Some((RCX, 1)),
        "dh" => Some((RDX, 1)),
        _ => None,
    })
}

/// The name of a register's eight bytes.
pub(super) fn name(register: usize) -> &'static str {
    NAMES[register][0]
}

impl<'a> Instruction<'a> {
    /// Parses an instruction; `None` if the text is empty.
    pub(super) fn parse(text: &'a str) -> Option<Instruction<'a>> {
        let (mut prefix, mut rest) = ("", text.trim());
        loop {
            let end = rest.find([' ', '\t', ';']).unwrap_or(rest.len());
            let word = &rest[..end];
            let behind = rest[end..].trim_start_matches([' ', '\t', ';']);
            let is_prefix = matches!(
                word,
                "rep"
                    | "repz"
                    | "repe"
                    | "repnz"
                    | "repne"
                    | "lock"
                    | "notrack"
                    | "bnd"
                    | "data16"
                    | "data32"
                    | "rex64"
                    | "cs"
                    | "ds"
                    | "{evex}"
                    | "{vex}"
                    | "xacquire"
                    | "xrelease"
            );
            if is_prefix && !behind.is_empty() {
                prefix = word;
                rest = behind;
                continue;
            }
            if word.is_empty() {
                return None;
            }
            let is_branch = word.starts_with('j') || word.starts_with("call");
            let operands = split(behind).map(|o| Operand::parse(o, is_branch)).collect();
            return Some(Instruction { prefix, mnemonic: word, operands });
        }
    }

    /// The place in memory that is named, and which operand it is.
    pub(super) fn memory(&self) -> Option<(usize, &Memory<'a>)> {
        self.operands.iter().enumerate().find_map(|(i, o)| match o {
            Operand::Memory(m) => Some((i, m)),
            _ => None,
        })
    }

    /// What happens to the memory that is named. `None` stands for an instruction that is not known.
    pub(super) fn access(&self) -> Option<Access> {
        let (index, _) = self.memory()?;
        let last = index + 1 == self.operands.len();
        let read = |size| Some(Access { reads: true, writes: false, size });
        let write = |size| Some(Access { reads: false, writes: true, size });
        let either = |size| if last { write(size) } else { read(size) };
        if self.prefix == "lock" || self.operands.iter().any(Operand::is_masked) {
            return None;
        }
        let m = self.mnemonic;
        let nothing = Some(Access { reads: false, writes: false, size: 0 });
        if m.starts_with("lea") || m.starts_with("nop") || m.starts_with("prefetch") {
            return nothing;
        }
        if m.starts_with('j') || m.starts_with("call") {
            return read(8);
        }
        match m {
            "push" | "pushq" => return read(8),
            "pop" | "popq" => return write(8),
            "mov" | "movabs" | "movabsq" => {
                return either(suffix_of("movabs", m).or_else(|| self.register_size())?);
            }
            "movb" | "movw" | "movl" => return either(size_of_suffix(m)?),
            "movq" | "vmovq" => return either(8),
            "movd" | "vmovd" => return either(4),
            "movbe" | "movnti" => return either(self.register_size()?),
            "movbel" | "movntil" => return either(4),
            "movbeq" | "movntiq" => return either(8),
            _ => {}
        }
        if let [b'm', b'o', b'v', b's' | b'z', from @ (b'b' | b'w' | b'l'), b'w' | b'l' | b'q'] =
            m.as_bytes()
        {
            return read(match from {
                b'b' => 1,
                b'w' => 2,
                _ => 4,
            });
        }
        if m.starts_with("set") {
            return write(1);
        }
        if m.starts_with("cmov") {
            return read(self.register_size()?);
        }
        if let Some(size) = self.integer_size(&["cmp", "test", "bt", "mul", "imul", "div", "idiv"])
        {
            return read(size);
        }
        const CHANGING: [&str; 23] = [
            "add", "sub", "and", "or", "xor", "adc", "sbb", "inc", "dec", "neg", "not", "sal",
            "sar", "shl", "shr", "rol", "ror", "rcl", "rcr", "shld", "shrd", "bts", "btr",
        ];
        if let Some(size) = self.integer_size(&CHANGING) {
            return if last {
                Some(Access { reads: true, writes: true, size })
            } else {
                read(size)
            };
        }
        const BITS: [&str; 19] = [
            "popcnt", "lzcnt", "tzcnt", "bsf", "bsr", "crc32", "andn", "bextr", "blsr", "blsi",
            "blsmsk", "bzhi", "pdep", "pext", "mulx", "sarx", "shlx", "shrx", "rorx",
        ];
        if let Some(size) = self.integer_size(&BITS) {
            return read(size);
        }
        self.float_access().or_else(|| self.vector_access(last))
    }

    /// How much memory an instruction reads and writes in one step, if it does.
    pub(super) fn atomic_size(&self) -> Option<u64> {
        let last = matches!(self.operands.last(), Some(Operand::Memory(_)));
        let exchanges = self.integer_size(&["xchg"]);
        if exchanges.is_some() || self.prefix != "lock" || !last {
            return exchanges;
        }
        self.integer_size(&[
            "cmpxchg", "xadd", "add", "sub", "and", "or", "xor", "adc", "sbb", "inc", "dec", "neg",
            "not", "bts", "btr", "btc",
        ])
    }

    /// The size that an integer instruction's suffix or else its registers say, if it is one of these.
    fn integer_size(&self, known: &[&str]) -> Option<u64> {
        let m = self.mnemonic;
        let of = |base: &&str| match m.strip_prefix(*base)? {
            "" => self.register_size(),
            "b" | "w" | "l" | "q" => size_of_suffix(m),
            _ => None,
        };
        known.iter().find_map(of)
    }

    /// The widest general register among the operands that says how wide the operation is: the last.
    fn register_size(&self) -> Option<u64> {
        self.operands.iter().rev().find_map(|o| match o {
            Operand::Register(_, size) => Some(*size),
            _ => None,
        })
    }

    /// Instructions of the x87.
    fn float_access(&self) -> Option<Access> {
        let m = self.mnemonic;
        let read = |size| Some(Access { reads: true, writes: false, size });
        let write = |size| Some(Access { reads: false, writes: true, size });
        match m {
            "fldcw" => return read(2),
            "fnstcw" | "fstcw" | "fnstsw" | "fstsw" => return write(2),
            "ldmxcsr" | "vldmxcsr" => return read(4),
            "stmxcsr" | "vstmxcsr" => return write(4),
            "fldt" => return read(10),
            "fstpt" => return write(10),
            _ => {}
        }
        for (base, writes) in [("fild", false), ("fisttp", true), ("fistp", true), ("fist", true)] {
            if let Some(suffix) = m.strip_prefix(base) {
                let size = match suffix {
                    "s" => 2,
                    "l" => 4,
                    "ll" | "q" => 8,
                    _ => return None,
                };
                return if writes { write(size) } else { read(size) };
            }
        }
        for (base, writes) in [
            ("fld", false),
            ("fstp", true),
            ("fst", true),
            ("fadd", false),
            ("fsub", false),
            ("fsubr", false),
            ("fmul", false),
            ("fdiv", false),
            ("fdivr", false),
            ("fcom", false),
            ("fcomp", false),
        ] {
            let size = match m.strip_prefix(base) {
                Some("s") => 4,
                Some("l") => 8,
                _ => continue,
            };
            return if writes { write(size) } else { read(size) };
        }
        None
    }

    /// Instructions of SSE and AVX.
    fn vector_access(&self, last: bool) -> Option<Access> {
        let read = |size| Some(Access { reads: true, writes: false, size });
        let write = |size| Some(Access { reads: false, writes: true, size });
        let either = |size| if last { write(size) } else { read(size) };
        let is_avx = self.mnemonic.starts_with('v');
        let m = self.mnemonic.strip_prefix('v').unwrap_or(self.mnemonic);
        let width = self.vector_width();
        match m {
            "movaps" | "movups" | "movapd" | "movupd" | "movdqa" | "movdqu" | "movdqa32"
            | "movdqa64" | "movdqu8" | "movdqu16" | "movdqu32" | "movdqu64" | "movntps"
            | "movntpd" | "movntdq" => {
                return either(width?);
            }
            "lddqu" | "movntdqa" | "movshdup" | "movsldup" => return read(width?),
            "movss" => return either(4),
            "movsd" | "movlps" | "movhps" | "movlpd" | "movhpd" => return either(8),
            "movddup" => return read(if width? == 16 { 8 } else { width? }),
            "pextrb" => return write(1),
            "pextrw" => return write(2),
            "pextrd" | "extractps" => return write(4),
            "pextrq" => return write(8),
            "extracti128" | "extractf128" => return write(16),
            "pinsrb" | "pbroadcastb" => return read(1),
            "pinsrw" | "pbroadcastw" => return read(2),
            "pinsrd" | "insertps" | "broadcastss" | "pbroadcastd" => return read(4),
            "pinsrq" | "broadcastsd" | "pbroadcastq" => return read(8),
            "inserti128" | "insertf128" | "broadcasti128" | "broadcastf128" => return read(16),
            "cvtdq2pd" | "cvtps2pd" => return read(width? / 2),
            "cvtdq2ps" | "cvtps2dq" | "cvttps2dq" => return read(width?),
            "cvtpd2ps" | "cvtpd2dq" | "cvttpd2dq" if !is_avx => return read(16),
            _ => {}
        }
        if let Some(kind) = m.strip_prefix("pmovzx").or_else(|| m.strip_prefix("pmovsx")) {
            return read(match kind {
                "bw" | "wd" | "dq" => width? / 2,
                "bd" | "wq" => width? / 4,
                "bq" => width? / 8,
                _ => return None,
            });
        }
        for (base, size) in [("cvtss2", 4), ("cvttss2", 4), ("cvtsd2", 8), ("cvttsd2", 8)] {
            if m.starts_with(base) {
                return read(size);
            }
        }
        if m.starts_with("cvtsi2") || m.starts_with("cvtusi2") {
            return read(if m.ends_with('q') { 8 } else { 4 });
        }
        let is_odd = ["gather", "scatter", "mask", "compress", "expand", "conflict", "cvt"];
        if last || is_odd.iter().any(|part| m.contains(part)) {
            return None;
        }
        if m.ends_with("ss") {
            read(4)
        } else if m.ends_with("sd") {
            read(8)
        } else if m.ends_with("ps")
            || m.ends_with("pd")
            || m.starts_with('p')
            || m.starts_with("aes")
        {
            read(width?)
        } else {
            None
        }
    }

    fn vector_width(&self) -> Option<u64> {
        let width = |o: &Operand<'_>| match o {
            Operand::Other(name) => [("mm", 8), ("xmm", 16), ("ymm", 32), ("zmm", 64)]
                .iter()
                .find(|(kind, _)| name.starts_with(kind))
                .map(|(_, width)| *width),
            _ => None,
        };
        self.operands.iter().filter_map(width).max()
    }
}

fn size_of_suffix(mnemonic: &str) -> Option<u64> {
    Some(match mnemonic.as_bytes().last()? {
        b'b' => 1,
        b'w' => 2,
        b'l' => 4,
        b'q' => 8,
        _ => return None,
    })
}

fn suffix_of(base: &str, mnemonic: &str) -> Option<u64> {
    mnemonic.strip_prefix(base).filter(|s| !s.is_empty()).and_then(size_of_suffix)
}

impl<'a> Operand<'a> {
    fn parse(text: &'a str, is_branch: bool) -> Operand<'a> {
        let (text, is_indirect) = match text.strip_prefix('*') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        if let Some(value) = text.strip_prefix('$') {
            return Operand::Immediate(value);
        }
        if let Some(name) = text.strip_prefix('%') {
            if let Some((number, size)) = register(name) {
                return Operand::Register(number, size);
            }
            if !name.contains(':') {
                return Operand::Other(name);
            }
        }
        if is_branch && !is_indirect {
            return Operand::Target(text);
        }
        Memory::parse(text).map_or(Operand::Other(text), Operand::Memory)
    }

    /// `{%k1}` and `{1to8}`: part of a vector.
    fn is_masked(&self) -> bool {
        matches!(self, Operand::Other(text) if text.contains('{'))
    }
}

impl<'a> Memory<'a> {
    fn parse(text: &'a str) -> Option<Memory<'a>> {
        if text.contains('{') {
            return None;
        }
        let (segment, text) = match text.strip_prefix('%').and_then(|t| t.split_once(':')) {
            Some((segment, rest)) => (segment, rest),
            None => ("", text),
        };
        let none = Memory {
            segment,
            displacement: text,
            base: None,
            is_relative: false,
            index: None,
            scale: 1,
        };
        let Some(inner) = text.strip_suffix(')') else { return Some(none) };
        let open = inner.rfind('(')?;
        let mut parts = inner[open + 1..].split(',').map(str::trim);
        let mut memory = Memory { displacement: &text[..open], ..none };
        match parts.next()? {
            "" => {}
            "%rip" => memory.is_relative = true,
            name => match register(name.strip_prefix('%')?) {
                Some((number, 8)) => memory.base = Some(number),
                _ => return None,
            },
        }
        if let Some(name) = parts.next() {
            match register(name.strip_prefix('%')?) {
                Some((number, 8)) => memory.index = Some(number),
                _ => return None,
            }
        }
        if let Some(scale) = parts.next() {
            memory.scale = scale.parse().ok()?;
        }
        Some(memory)
    }

    /// The symbol and the number in the displacement: `16+table`, `table-4`, `-8`.
    pub(super) fn displacement(&self) -> Option<(&'a str, i64)> {
        let (mut symbol, mut sum) = ("", 0i64);
        let text = self.displacement;
        let mut at = 0;
        while at < text.len() {
            let from = at + usize::from(text[at..].starts_with(['+', '-']));
            let end = text[from..].find(['+', '-']).map_or(text.len(), |e| from + e);
            let word = &text[from..end];
            match number(word) {
                Some(n) if text[at..].starts_with('-') => sum = sum.wrapping_sub(n),
                Some(n) => sum = sum.wrapping_add(n),
                None if symbol.is_empty() && !text[at..].starts_with('-') => symbol = word,
                None => return None,
            }
            at = end;
        }
        Some((symbol, sum))
    }
}

/// A number as assemblers write it.
pub(super) fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as i64),
        None => text.parse().ok(),
    }
}

/// Operands between commas that are not in parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text.trim()).filter(|t| !t.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let mut depth = 0;
        let end = text.bytes().position(|b| {
            depth += i32::from(b == b'(') - i32::from(b == b')');
            b == b',' && depth == 0
        });
        rest = end.map(|e| &text[e + 1..]);
        Some(text[..end.unwrap_or(text.len())].trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses() {
        for (text, reads, writes, size) in [
            ("movq 8(%rax), %rdx", true, false, 8),
            ("movl $1, s+4(%rip)", false, true, 4),
            ("movzbl (%rdi,%rcx), %eax", true, false, 1),
            ("movslq (%rdi), %rax", true, false, 4),
            ("addl $1, x(%rip)", true, true, 4),
            ("addl x(%rip), %eax", true, false, 4),
            ("cmpb $0, (%rax)", true, false, 1),
            ("shrl (%rax)", true, true, 4),
            ("setne 3(%rax)", false, true, 1),
            ("cmovne 8(%rax), %edx", true, false, 4),
            ("pushq 16(%rbx)", true, false, 8),
            ("call *16(%rax)", true, false, 8),
            ("movups %xmm0, (%rax)", false, true, 16),
            ("vmovdqu (%rax), %ymm1", true, false, 32),
            ("movsd (%rax), %xmm0", true, false, 8),
            ("addsd x(%rip), %xmm0", true, false, 8),
            ("mulss x(%rip), %xmm0", true, false, 4),
            ("paddd (%rax), %xmm0", true, false, 16),
            ("cvtsi2sdq (%rax), %xmm0", true, false, 8),
            ("movhps %xmm0, 8(%rax)", false, true, 8),
            ("fldt (%rax)", true, false, 10),
            ("fstpl (%rax)", false, true, 8),
            ("fildll (%rax)", true, false, 8),
            ("imull (%rax), %edx", true, false, 4),
            ("leaq 8(%rax), %rdx", false, false, 0),
        ] {
            let access = Instruction::parse(text).unwrap().access();
            assert_eq!(access, Some(Access { reads, writes, size }), "{text}");
        }
        for text in ["lock addl $1, (%rax)", "vpgatherdd (%rax), %xmm0", "xsave (%rax)"] {
            assert_eq!(Instruction::parse(text).unwrap().access(), None, "{text}");
        }
    }

    #[test]
    fn single_steps() {
        for (text, size) in [
            ("lock xaddl %eax, (%rdi)", Some(4)),
            ("lock; cmpxchgq %rcx, (%rdi)", Some(8)),
            ("xchgb %al, (%rdi)", Some(1)),
            ("xchg %eax, (%rdi)", Some(4)),
            ("lock incl (%rdi)", Some(4)),
            ("addl $1, (%rdi)", None),
            ("lock cmpxchg16b (%rdi)", None),
        ] {
            assert_eq!(Instruction::parse(text).unwrap().atomic_size(), size, "{text}");
        }
    }

    #[test]
    fn operands() {
        let parsed = Instruction::parse("rep;movsq (%rsi), %es:(%rdi)").unwrap();
        assert_eq!((parsed.prefix, parsed.mnemonic), ("rep", "movsq"));
        let parsed = Instruction::parse("movl %eax, 16+table-4(,%rcx,4)").unwrap();
        let (at, memory) = parsed.memory().unwrap();
        assert_eq!((at, memory.index, memory.scale), (1, Some(1), 4));
        assert_eq!(memory.displacement(), Some(("table", 12)));
        let parsed = Instruction::parse("movq %fs:x@tpoff, %rax").unwrap();
        assert_eq!(parsed.memory().unwrap().1.segment, "fs");
        let parsed = Instruction::parse("jmp .L3").unwrap();
        assert_eq!(parsed.operands, [Operand::Target(".L3")]);
        assert_eq!(Instruction::parse("\t"), None);
    }
}
