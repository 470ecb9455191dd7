//! Parse dates and instants in ISO 8601.

use arrow_schema::TimeUnit;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};

/// The days since 1970 of a date such as `2026-05-31`.
pub(super) fn day(text: &str) -> Option<i32> {
    let since_1970 = date(text)?.signed_duration_since(NaiveDate::default());
    i32::try_from(since_1970.num_days()).ok()
}

/// The units since 1970 of an instant such as `2026-05-31T10:20:30.123+02:00`. A space may replace
/// the T; the zone may be `Z` or missing; a date alone is its midnight.
pub(super) fn instant(text: &str, unit: TimeUnit) -> Option<i64> {
    let instant = utc(text)?;
    match unit {
        TimeUnit::Second => Some(instant.timestamp()),
        TimeUnit::Millisecond => Some(instant.timestamp_millis()),
        TimeUnit::Microsecond => Some(instant.timestamp_micros()),
        TimeUnit::Nanosecond => instant.timestamp_nanos_opt(),
    }
}

/// The instant of a text; without a zone it is taken as UTC.
pub(super) fn utc(text: &str) -> Option<DateTime<Utc>> {
    let instant = if let Some(day) = date(text) {
        day.and_time(NaiveTime::MIN)
    } else {
        let (day, time) = text.split_at_checked("0000-00-00".len())?;
        let (time, zone) =
            NaiveTime::parse_and_remainder(time.strip_prefix(['T', ' '])?, "%H:%M:%S%.f").ok()?;
        NaiveDateTime::new(date(day)?, time).checked_sub_signed(offset(zone.trim_start())?)?
    };
    Some(instant.and_utc())
}

fn date(text: &str) -> Option<NaiveDate> {
    let bytes = text.as_bytes();
    if bytes.len() != "0000-00-00".len() || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    NaiveDate::from_ymd_opt(digits(&bytes[..4])?.cast_signed(), digits(&bytes[5..7])?, digits(&bytes[8..])?)
}

/// The offset of a time zone: `Z`, `+01`, `-0130` or `+01:30`.
fn offset(zone: &str) -> Option<TimeDelta> {
    let zone = match zone.as_bytes() {
        [] | b"Z" | b"z" => return Some(TimeDelta::zero()),
        zone => zone,
    };
    let (hours, minutes) = match zone[1..] {
        [a, b] => (digits(&[a, b])?, 0),
        [a, b, c, d] | [a, b, b':', c, d] => (digits(&[a, b])?, digits(&[c, d])?),
        _ => return None,
    };
    let ahead = TimeDelta::minutes(i64::from(hours * 60 + minutes));
    match zone[0] {
        _ if hours > 23 || minutes > 59 => None,
        b'+' => Some(ahead),
        b'-' => Some(-ahead),
        _ => None,
    }
}

fn digits(text: &[u8]) -> Option<u32> {
    text.iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("1969-12-31", Some(-1)),
            ("2000-02-29", Some(11_016)),
            ("1900-02-29", None),
            ("2026-13-01", None),
            ("2026-1-01", None),
            ("2026-01-01 ", None),
            ("+026-01-01", None),
            ("2026-01-0é", None),
        ] {
            assert_eq!(day(text), expected, "{text}");
        }
    }

    #[test]
    fn instants_are_those_of_their_zone() {
        let hour = 3_600;
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("1970-01-02 00:00:01", Some(86_401)),
            ("1970-01-01T00:00:59Z", Some(59)),
            ("1970-01-01T02:00:00+01:00", Some(hour)),
            ("1970-01-01T00:00:00 -0130", Some(5_400)),
            ("1970-01-01T12:00:00+12", Some(0)),
            ("1969-12-31T23:59:59.900", Some(-1)),
            ("1970-01-01T24:00:00", None),
            ("1970-01-01T00:60:00", None),
            ("1970-01-01T00:00:00+1", None),
            ("1970-01-01T00:00:00 CET", None),
            ("1970-01-01T00:00:00+24:00", None),
            ("1970-01-01X00:00:00", None),
            ("1970-02-30T00:00:00", None),
            ("éééééé", None),
        ] {
            assert_eq!(instant(text, TimeUnit::Second), expected, "{text}");
        }
        let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
        let at = |text: &str| units.map(|unit| instant(text, unit));
        assert_eq!(
            at("1970-01-01T00:00:01.123456789"),
            [Some(1), Some(1_123), Some(1_123_456), Some(1_123_456_789)]
        );
        // Nanoseconds end in 2262.
        assert_eq!(at("2300-01-01T00:00:00")[3], None);
    }
}
