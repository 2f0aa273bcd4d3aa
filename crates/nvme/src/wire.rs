//! Declarations of wire formats: `layout!` for byte layouts, `bits!` for registers, `codes!` for
//! numbered values. One declaration gives getter, setter, field table, debug text and the
//! compile-time proof that fields neither overlap nor leave the structure.
//!
//! All shifts and offsets stand in declarations. Invariant: parsing keeps the original bytes, so
//! reserved and unknown values survive a round trip.

/// One field of a layout, for the generated reference and the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name as in the declaration.
    pub name: &'static str,
    /// Offset in bytes from the start of the structure.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// Panics at compile time when fields overlap, are out of order or leave `size`.
pub const fn assert_layout(fields: &[Field], size: usize) {
    let mut end = 0;
    let mut index = 0;
    while index < fields.len() {
        let field = fields[index];
        assert!(field.offset >= end, "fields overlap or are out of order");
        end = field.offset + field.size;
        assert!(end <= size, "a field leaves its structure");
        index += 1;
    }
}

/// Panics at compile time when bit ranges overlap, are out of order or leave `width`.
pub const fn assert_bits(ranges: &[(u32, u32)], width: u32) {
    let mut next = 0;
    let mut index = 0;
    while index < ranges.len() {
        let (low, high) = ranges[index];
        assert!(low >= next && high >= low, "bit ranges overlap or are out of order");
        assert!(high < width, "a bit range leaves its register");
        next = high + 1;
        index += 1;
    }
}

/// Returns the `N` bytes at `offset`; layouts prove at compile time that they are there.
pub fn take<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[offset..offset + N]);
    out
}

/// Declares a fixed-size little-endian structure: `name / set_name: type @ offset`, where a type
/// is `u8`, `u16`, `u32`, `u64` or `[n]` bytes. On-media formats use it too.
#[macro_export]
macro_rules! layout {
    ($(#[$meta:meta])* $vis:vis struct $Name:ident [$size:literal] {
        $( $(#[$field_meta:meta])* $get:ident / $set:ident : $ty:tt @ $offset:literal ),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        $vis struct $Name { bytes: [u8; $size] }

        #[allow(dead_code, unreachable_pub)] // a private layout may leave accessors unused
        impl $Name {
            /// Size on the wire in bytes.
            pub const SIZE: usize = $size;
            /// Every declared field, in order.
            pub const FIELDS: &'static [$crate::wire::Field] = &[
                $( $crate::wire::Field {
                    name: stringify!($get), offset: $offset, size: $crate::layout!(@size $ty),
                }, )*
            ];
            /// Returns all bytes zero.
            pub const fn zeroed() -> Self { Self { bytes: [0; $size] } }
            /// Makes the structure from exactly its bytes.
            pub const fn from_bytes(bytes: [u8; $size]) -> Self { Self { bytes } }
            /// Parses the head of `bytes`; `None` if they are too few.
            pub fn parse(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk::<$size>().map(|head| Self { bytes: *head })
            }
            /// Returns the bytes as they go over the wire.
            pub const fn as_bytes(&self) -> &[u8; $size] { &self.bytes }
            $( $crate::layout!(@access $ty, $get, $set, $offset, $(#[$field_meta])*); )*
        }

        const _: () = $crate::wire::assert_layout($Name::FIELDS, $size);

        impl Default for $Name { fn default() -> Self { Self::zeroed() } }

        impl core::fmt::Debug for $Name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut text = f.debug_struct(stringify!($Name));
                for field in Self::FIELDS {
                    let value = &self.bytes[field.offset..field.offset + field.size];
                    if value.iter().any(|byte| *byte != 0) { text.field(field.name, &value); }
                }
                text.finish_non_exhaustive()
            }
        }
    };
    (@size u8) => { 1 };
    (@size u16) => { 2 };
    (@size u32) => { 4 };
    (@size u64) => { 8 };
    (@size [$n:literal]) => { $n };
    (@access u8, $get:ident, $set:ident, $offset:literal, $(#[$m:meta])*) => {
        $(#[$m])*
        pub const fn $get(&self) -> u8 { self.bytes[$offset] }
        $(#[$m])*
        pub const fn $set(&mut self, value: u8) -> &mut Self {
            self.bytes[$offset] = value;
            self
        }
    };
    (@access [$n:literal], $get:ident, $set:ident, $offset:literal, $(#[$m:meta])*) => {
        $(#[$m])*
        pub fn $get(&self) -> [u8; $n] { $crate::wire::take(&self.bytes, $offset) }
        $(#[$m])*
        pub fn $set(&mut self, value: &[u8; $n]) -> &mut Self {
            self.bytes[$offset..$offset + $n].copy_from_slice(value);
            self
        }
    };
    (@access $ty:ident, $get:ident, $set:ident, $offset:literal, $(#[$m:meta])*) => {
        $(#[$m])*
        pub fn $get(&self) -> $ty { <$ty>::from_le_bytes($crate::wire::take(&self.bytes, $offset)) }
        $(#[$m])*
        pub fn $set(&mut self, value: $ty) -> &mut Self {
            self.bytes[$offset..$offset + core::mem::size_of::<$ty>()]
                .copy_from_slice(&value.to_le_bytes());
            self
        }
    };
}

/// Declares a register: `name / set_name: low..=high` over an unsigned integer.
macro_rules! bits {
    ($(#[$meta:meta])* $vis:vis struct $Name:ident : $repr:ident {
        $( $(#[$field_meta:meta])* $get:ident / $set:ident : $low:literal ..= $high:literal ),*
        $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Default)]
        $vis struct $Name(pub $repr);

        #[allow(dead_code, unreachable_pub)]
        impl $Name {
            $(
                $(#[$field_meta])*
                pub const fn $get(self) -> $repr {
                    (self.0 >> $low) & ($repr::MAX >> ($repr::BITS - 1 - ($high - $low)))
                }
                $(#[$field_meta])*
                #[must_use]
                pub const fn $set(self, value: $repr) -> Self {
                    let mask = $repr::MAX >> ($repr::BITS - 1 - ($high - $low));
                    Self((self.0 & !(mask << $low)) | ((value & mask) << $low))
                }
            )*
        }

        const _: () = $crate::wire::assert_bits(&[$(($low, $high)),*], $repr::BITS);

        impl core::fmt::Debug for $Name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($Name))$(.field(stringify!($get), &self.$get()))*.finish()
            }
        }
    };
}

/// Declares an open set of numbered values: unknown numbers are kept and printed as numbers.
macro_rules! codes {
    ($(#[$meta:meta])* $vis:vis struct $Name:ident : $repr:ident {
        $( $CODE:ident = $value:literal : $text:literal ),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis struct $Name(pub $repr);

        #[allow(missing_docs)]
        impl $Name {
            $( pub const $CODE: Self = Self($value); )*
            /// Every known code with its words.
            pub const TABLE: &'static [(Self, &'static str)] = &[$((Self($value), $text)),*];
        }

        impl $Name {
            /// Returns the words for a known code.
            pub fn text(self) -> Option<&'static str> {
                Self::TABLE.iter().find(|(code, _)| *code == self).map(|(_, text)| *text)
            }
        }

        impl core::fmt::Display for $Name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.text() {
                    Some(text) => write!(f, "{text} ({:#04x})", self.0),
                    None => write!(f, "unknown ({:#04x})", self.0),
                }
            }
        }

        impl core::fmt::Debug for $Name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($Name), "[{}]"), self)
            }
        }
    };
}

pub use crate::layout;
pub(crate) use {bits, codes};

/// Copies `text` into a fixed ASCII field, cut to fit and padded with `pad`.
pub fn fixed_text<const N: usize>(text: &str, pad: u8) -> [u8; N] {
    let mut out = [pad; N];
    let count = text.len().min(N);
    out[..count].copy_from_slice(&text.as_bytes()[..count]);
    out
}

/// Returns the text of a fixed field up to its first zero, without trailing spaces; `None` when it
/// is not UTF-8.
pub fn text_of(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    core::str::from_utf8(&bytes[..end]).ok().map(str::trim_end)
}

#[cfg(test)]
mod tests {
    layout! {
        /// A sample with one field of each kind.
        struct Sample[24] {
            /// a
            a / set_a: u8 @ 0,
            /// b
            b / set_b: u16 @ 1,
            /// c
            c / set_c: u32 @ 4,
            /// d
            d / set_d: u64 @ 8,
            /// e
            e / set_e: [3] @ 20,
        }
    }
    bits! {
        /// A sample register.
        struct Register: u64 {
            /// low
            low / set_low: 0..=15,
            /// one
            one / set_one: 37..=37,
            /// top
            top / set_top: 60..=63,
        }
    }

    #[test]
    fn fields_are_little_endian_at_their_offsets() {
        let mut sample = Sample::zeroed();
        sample.set_a(1).set_b(0x0302).set_c(0x0807_0605).set_d(0x1112).set_e(&[7, 8, 9]);
        let bytes = sample.as_bytes();
        assert_eq!(&bytes[..8], &[1, 2, 3, 0, 5, 6, 7, 8]);
        assert_eq!(&bytes[8..16], &[0x12, 0x11, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&bytes[20..], &[7, 8, 9, 0]);
        assert_eq!((sample.a(), sample.b(), sample.c()), (1, 0x0302, 0x0807_0605));
        assert_eq!((sample.d(), sample.e()), (0x1112, [7, 8, 9]));
    }

    #[test]
    fn undeclared_bytes_survive_a_round_trip() {
        let bytes: [u8; 24] = core::array::from_fn(|index| u8::try_from(index).unwrap() + 1);
        assert_eq!(Sample::from_bytes(bytes).as_bytes(), &bytes);
        assert_eq!(Sample::parse(&bytes).unwrap().as_bytes(), &bytes);
        assert!(Sample::parse(&bytes[..23]).is_none());
    }

    #[test]
    fn bit_ranges_do_not_disturb_each_other() {
        let register = Register(u64::MAX).set_low(0x1234).set_one(0);
        assert_eq!((register.low(), register.one(), register.top()), (0x1234, 0, 15));
        assert_eq!(Register::default().set_top(0xFF).0, 0xF000_0000_0000_0000);
    }

    #[test]
    fn overlaps_are_refused() {
        let field = |name, offset, size| super::Field { name, offset, size };
        let overlap = [field("a", 0, 4), field("b", 2, 2)];
        assert!(std::panic::catch_unwind(|| super::assert_layout(&overlap, 8)).is_err());
        assert!(std::panic::catch_unwind(|| super::assert_layout(&overlap[..1], 3)).is_err());
        assert!(std::panic::catch_unwind(|| super::assert_bits(&[(0, 4), (4, 5)], 8)).is_err());
    }
}
