//! Protocol buffers, as much of them as writing takes: a message is its fields one after the other, each with its number
//! and the way its value is written.

/// A message under construction.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(Vec<u8>);

/// How a value is written: as a number of seven bits a byte, or as bytes with their length before them.
const NUMBER: u64 = 0;
const BYTES: u64 = 2;

impl Message {
    /// Adds a whole number, of an enumeration too.
    pub(super) fn int(mut self, field: u32, value: i64) -> Self {
        self.varint(u64::from(field) << 3 | NUMBER);
        // A negative number has all ten bytes.
        self.varint(value.cast_unsigned());
        self
    }

    /// Adds bytes.
    pub(super) fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | BYTES);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    /// Adds text.
    pub(super) fn text(self, field: u32, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// Adds a message inside this one.
    pub(super) fn message(self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// Adds many values of one field.
    pub(super) fn each<T>(self, values: impl IntoIterator<Item = T>, add: impl Fn(Self, T) -> Self) -> Self {
        values.into_iter().fold(self, add)
    }

    /// The finished message.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Seven bits a byte, the lowest first; the eighth bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        loop {
            let seven = (value & 0x7f) as u8;
            value >>= 7;
            self.0.push(if value > 0 { seven | 0x80 } else { seven });
            if value == 0 {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the format's documentation (protobuf.dev, "Encoding").
    #[test]
    fn bytes_are_those_of_the_documentation() {
        assert_eq!(Message::default().int(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(
            Message::default().text(2, "testing").into_bytes(),
            [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]
        );
        let inner = Message::default().int(1, 150);
        assert_eq!(Message::default().message(3, &inner).into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let minus_two = [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Message::default().int(1, -2).into_bytes(), minus_two);
    }

    #[test]
    fn fields_follow_on_each_other() {
        let message =
            Message::default().int(1, 0).bytes(16, &[]).each([1, 127, 128], |message, n| message.int(8, n));
        assert_eq!(message.into_bytes(), [0x08, 0, 0x82, 0x01, 0, 0x40, 1, 0x40, 127, 0x40, 0x80, 0x01]);
    }
}
