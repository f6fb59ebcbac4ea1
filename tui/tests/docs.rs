//! The documentation of the keys is made from their table.

use std::path::Path;

#[test]
fn keys_are_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/keys.md");
    let made = vramscope_tui::keys_markdown();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &made).expect("docs/keys.md is writable");
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        known == made,
        "docs/keys.md is not what the table says: UPDATE_DOCS=1 cargo test -p vramscope-tui --test docs"
    );
}
