//! Numbers as bytes: LEB128 varints, zigzag for signed ones.

use crate::error::Malformed;

/// Appends `value` as an LEB128 varint: seven bits a byte, lowest first, the highest bit says that
/// more follow. At most ten bytes.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Signed numbers near zero become small unsigned ones: 0, -1, 1, -2, … to 0, 1, 2, 3, …
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The reverse of [`zigzag`].
#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes being read. Never reads beyond its end.
#[derive(Clone, Debug)]
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        // Most are one byte.
        if let [first, rest @ ..] = self.bytes
            && *first < 0x80
        {
            self.bytes = rest;
            return Ok(u64::from(*first));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for (index, byte) in self.bytes.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if index == 9 && bits > 1 {
                return Err(Malformed("a number above 64 bits"));
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[index + 1..];
                return Ok(value);
            }
        }
        Err(Malformed("a number without end"))
    }

    #[inline]
    pub fn signed(&mut self) -> Result<i64, Malformed> {
        Ok(unzigzag(self.varint()?))
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed("a number above 32 bits"))
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        u16::try_from(self.varint()?).map_err(|_| Malformed("a number above 16 bits"))
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self
            .bytes
            .split_first()
            .ok_or(Malformed("a byte is missing"))?;
        self.bytes = rest;
        Ok(*first)
    }

    /// A length and so many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.varint()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > self.bytes.len() {
            return Err(Malformed("a length beyond the end"));
        }
        let (taken, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Ok(taken)
    }

    /// A number of things of which each takes at least a byte of what follows.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.bytes.len() => Ok(count),
            _ => Err(Malformed("more things than bytes")),
        }
    }

    /// Everything that is left.
    pub fn rest(self) -> &'a [u8] {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_survive(value: u64, signed: i64) {
            let mut out = Vec::new();
            put(&mut out, value);
            put(&mut out, zigzag(signed));
            let mut input = Input::new(&out);
            prop_assert_eq!(input.varint(), Ok(value));
            prop_assert_eq!(input.signed(), Ok(signed));
            prop_assert!(input.is_empty());
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        assert!(Input::new(&[0x80]).varint().is_err());
        assert!(Input::new(&[0xff; 11]).varint().is_err());
        assert!(Input::new(&[5, 1, 2]).bytes().is_err());
        assert!(Input::new(&[200, 1]).count().is_err());
    }
}
