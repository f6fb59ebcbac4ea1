//! Where a called function returns to: code that libc has anyway.

/// Addresses in libc, or offsets in its code until [`Landing::at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Landing {
    /// Stores `rax` where a register points that functions leave alone, and returns.
    pub store_result: u64,
    /// How many words it takes off the stack before it returns.
    pub pops: usize,
    /// `mov $15, %rax; syscall`: `rt_sigreturn`.
    pub restore: u64,
}

/// `__restore_rt`. Unwinders know it by these bytes, so they do not change.
const RESTORE: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
/// `mov %rax, (R)` for R of rbx, rbp, r12, r13, r14, r15.
const STORES: [&[u8]; 6] = [
    &[0x48, 0x89, 0x03],
    &[0x48, 0x89, 0x45, 0x00],
    &[0x49, 0x89, 0x04, 0x24],
    &[0x49, 0x89, 0x45, 0x00],
    &[0x49, 0x89, 0x06],
    &[0x49, 0x89, 0x07],
];
const MOST_POPS: usize = 32;

impl Landing {
    /// Searches machine code.
    pub(crate) fn find(code: &[u8]) -> Option<Landing> {
        let restore = code
            .windows(RESTORE.len())
            .position(|window| window == RESTORE)?;
        let (store_result, pops) = (0..code.len()).find_map(|at| {
            let rest = &code[at..];
            let store = STORES.iter().find(|store| rest.starts_with(store))?;
            Some((at, pops_until_return(&rest[store.len()..])?))
        })?;
        Some(Landing {
            store_result: store_result as u64,
            pops,
            restore: restore as u64,
        })
    }

    /// The same with the code at this address.
    pub(crate) fn at(self, code: u64) -> Landing {
        Landing {
            store_result: self.store_result + code,
            restore: self.restore + code,
            ..self
        }
    }
}

/// The words that instructions take off the stack until a `ret`, where nothing stands before it but
/// what ends a function.
fn pops_until_return(mut code: &[u8]) -> Option<usize> {
    let mut pops = 0;
    while pops <= MOST_POPS {
        let length = match code {
            [0xc3, ..] => return Some(pops),
            // xor %eax, %eax; mov $imm32, %eax
            [0x31, 0xc0, ..] => 2,
            [0xb8, _, _, _, _, ..] => 5,
            // add $imm8, %rsp
            [0x48, 0x83, 0xc4, bytes @ 0..=0x7f, ..] if bytes % 8 == 0 => {
                pops += usize::from(bytes / 8);
                4
            }
            // pop of r8 to r15
            [0x41, 0x58..=0x5f, ..] => {
                pops += 1;
                2
            }
            // pop of rsp would leave the stack.
            [0x5c, ..] => return None,
            [0x58..=0x5f, ..] => {
                pops += 1;
                1
            }
            _ => return None,
        };
        code = &code[length..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_landing_is_found_and_counted() {
        let mut code = vec![0x90; 5];
        // mov %rax, (%rbx); then a jump: not usable.
        code.extend([0x48, 0x89, 0x03, 0xeb, 0x10]);
        // mov %rax, (%r12); add $16, %rsp; xor %eax, %eax; pop %rbx; pop %r12; ret
        code.extend([
            0x49, 0x89, 0x04, 0x24, 0x48, 0x83, 0xc4, 0x10, 0x31, 0xc0, 0x5b, 0x41, 0x5c, 0xc3,
        ]);
        code.extend(RESTORE);
        assert_eq!(
            Landing::find(&code).map(|landing| landing.at(0x1000)),
            Some(Landing {
                store_result: 0x100a,
                pops: 4,
                restore: 0x1018,
            })
        );
        assert_eq!(Landing::find(&code[..24]), None);
        assert_eq!(Landing::find(&RESTORE), None);
    }

    #[test]
    fn any_code_is_accepted() {
        for length in 0..STORES.len() {
            for store in STORES {
                let mut code = RESTORE.to_vec();
                code.extend(store);
                code.extend(vec![0x5b; length]);
                assert_eq!(Landing::find(&code), None);
            }
        }
    }
}
