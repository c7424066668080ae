//! Inputs made of other inputs: parts left out, repeated, replaced, and joined with those of others.

use rand::{Rng, RngExt, SeedableRng, rngs::SmallRng};

/// What parsers are likely to stumble over.
const PIECES: [&[u8]; 28] = [
    b"\0",
    b"\n",
    b"\x1b",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xc2\x85",
    b"\"",
    b"\\u0000",
    b"{",
    b"[",
    b"}",
    b"%00",
    b"%0a",
    b"%",
    b"?",
    b"@",
    b"&",
    b"//",
    b"\r\n",
    b"-1",
    b"0",
    b"1e999",
    b"9007199254740991",
    b"9007199254740992",
    b"18446744073709551616",
    b"hunter2",
    b"postgres",
    b"sqlite:",
];

/// Makes inputs; the same ones for the same seed.
pub(crate) struct Mutator {
    random: SmallRng,
    kept: Vec<Vec<u8>>,
}

impl Mutator {
    pub(crate) fn new(seed: u64, kept: Vec<Vec<u8>>) -> Self {
        Self { random: SmallRng::seed_from_u64(seed), kept }
    }

    pub(crate) fn make(&mut self) -> Vec<u8> {
        let mut bytes = self.any_kept().clone();
        for _ in 0..self.random.random_range(1..5) {
            self.change(&mut bytes);
        }
        bytes
    }

    fn any_kept(&mut self) -> &Vec<u8> {
        let n = self.random.random_range(0..self.kept.len());
        &self.kept[n]
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let from = self.random.random_range(0..=bytes.len());
        let to = bytes.len().min(from + self.random.random_range(0..12));
        let piece: Vec<u8> = match self.random.random_range(0..7) {
            0 => Vec::new(),
            1 => bytes[from..to].repeat(self.random.random_range(2..6)),
            2 => bytes[from..to].iter().map(|byte| byte ^ (1 << self.random.random_range(0..8))).collect(),
            3 => (from..to).map(|_| (self.random.next_u32() & 0xff) as u8).collect(),
            4 => self.part_of_another(),
            _ => PIECES[self.random.random_range(0..PIECES.len())].to_vec(),
        };
        bytes.splice(from..to, piece);
    }

    fn part_of_another(&mut self) -> Vec<u8> {
        let other = self.any_kept().clone();
        let from = self.random.random_range(0..=other.len());
        let to = other.len().min(from + self.random.random_range(0..200));
        other[from..to].to_vec()
    }
}
