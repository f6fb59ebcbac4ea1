use super::*;

fn head(kind: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((kind as u16).to_le_bytes());
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(3u16.to_le_bytes());
    bytes.extend(1u16.to_le_bytes());
    bytes.extend(99u64.to_le_bytes());
    bytes.extend(7u32.to_le_bytes());
    bytes.extend(5u32.to_le_bytes());
    bytes
}

#[test]
fn a_free_keeps_its_sign() {
    let mut bytes = head(vs_kind_VS_TENSOR);
    for value in [0x7000_0000u64, (-512i64) as u64, 1024, 2048] {
        bytes.extend(value.to_le_bytes());
    }
    let Some(Record::Tensor(tensor)) = Record::parse(&bytes) else {
        panic!("not a tensor record");
    };
    assert_eq!(
        (tensor.size, tensor.allocated, tensor.head.device),
        (-512, 1024, 2)
    );
    assert_eq!((tensor.head.process, tensor.head.stack), (3, 5));
}

#[test]
fn short_and_unknown_records_are_refused() {
    for kind in 0..12 {
        let whole = head(kind);
        for size in 0..whole.len() {
            assert!(Record::parse(&whole[..size]).is_none());
        }
    }
    assert!(Record::parse(&head(0)).is_none());
    assert!(Record::parse(&head(vs_kind_VS_STACK)).is_none());
}

#[test]
fn counts_beyond_the_bytes_are_refused() {
    let mut bytes = head(vs_kind_VS_STACK);
    bytes.extend(2u32.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend([0; 8]);
    assert!(Record::parse(&bytes).is_none(), "one frame, two announced");
    bytes.extend([0; 8]);
    assert!(matches!(
        Record::parse(&bytes),
        Some(Record::Stack(stack)) if stack.frames().count() == 2
    ));
    bytes[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(Record::parse(&bytes).is_none());
}

/// A ring's other end is not trusted: whatever lies in a record, it is read to its end or refused.
#[test]
fn any_bytes_are_records_or_refused() {
    // xorshift64 (Marsaglia, 2003).
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let runs = std::env::var("VRAMSCOPE_FUZZ_RUNS").map_or(20_000, |runs| runs.parse().unwrap());
    let (mut read, mut refused) = (0_u64, 0_u64);
    for _ in 0..runs {
        let length = 8 * (random() % 40) as usize;
        let mut bytes: Vec<u8> = (0..length / 8)
            .flat_map(|_| random().to_le_bytes())
            .collect();
        if let Some(kind) = bytes.first_chunk_mut::<2>() {
            *kind = ((random() % 13) as u16).to_le_bytes();
        }
        // Counts that nearly fit are where mistakes are.
        for at in [24, 28, 40, 44, 48, 52, 56] {
            if random() % 2 == 0
                && let Some(count) = bytes.get_mut(at..at + 4)
            {
                count.copy_from_slice(&((random() % 40) as u32).to_le_bytes());
            }
        }
        match Record::parse(&bytes) {
            None => refused += 1,
            Some(record) => {
                read += 1;
                if let Record::Stack(stack) = &record {
                    let frames = stack.frames().count() + stack.native().count();
                    assert!(8 * frames <= bytes.len());
                }
                if let Record::Mixed(mixed) = &record {
                    assert!(8 * mixed.native().count() <= bytes.len());
                }
                if let Record::Copy(copy) = &record {
                    assert!(copy.stack.len() <= bytes.len());
                    assert_eq!(copy.word(copy.sp.wrapping_sub(8)), None);
                }
                if let Record::Code(code) = &record {
                    let parts = [code.file.data, code.name.data, code.lines];
                    assert!(parts.iter().map(|part| part.len()).sum::<usize>() <= bytes.len());
                }
            }
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}
