//! Whatever the names, each text format parses back to what was written.

mod support;

use proptest::prelude::*;
use support::Writer;
use vramscope_events::{FrameKind, Layer};
use vramscope_export::{Weight, csv, folded, html, speedscope, svg};

fn names() -> impl Strategy<Value = Vec<(String, String)>> {
    let special = prop::sample::select(vec![
        "<",
        ">",
        "&",
        "\"",
        "'",
        "\\",
        "/",
        "=",
        "+",
        "-",
        "@",
        ";",
        "#",
        ",",
        "\n",
        "\r",
        "\t",
        "\0",
        "\u{1b}",
        "</script>",
        "<!--",
        "]]>",
        " 12",
        "\u{202e}",
        "\u{2028}",
        "\u{feff}",
        "{{",
        "${",
        "/*JS*/",
        "/*DATA*/",
    ]);
    let piece = prop_oneof![special.prop_map(String::from), "\\PC{0,6}", any::<String>()];
    let name = prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat());
    prop::collection::vec((name.clone(), name), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn text_formats_hold(names in names()) {
        let mut writer = Writer::new();
        let mut expected = 0;
        for (index, (function, file)) in names.iter().enumerate() {
            let kind = [FrameKind::Python, FrameKind::Native][index % 2];
            let stack = writer.stack(&[(kind, file, function, index as u32)]);
            let size = 512 << index;
            expected += size;
            writer.alloc(Layer::Tensor, 0, (index as u64 + 1) << 32, size, stack);
        }
        let gathered = writer.finish("names", &names[0].0).survivors();
        let selection = &gathered.selection;

        let text = folded::write(selection, Weight::Bytes);
        let lines = text.lines().map(|line| line.rsplit_once(' ').expect("a weight"));
        let sum: u64 = lines.map(|(stack, weight)| {
            assert!(stack.ends_with([')', ']']) && !stack.starts_with(['#', ' ']));
            weight.parse::<u64>().unwrap()
        }).sum();
        prop_assert_eq!(sum, expected);

        let mut bytes = Vec::new();
        csv::write(selection, &mut bytes).unwrap();
        for row in ::csv::Reader::from_reader(&bytes[..]).records() {
            for cell in &row.unwrap() {
                prop_assert!(!cell.trim_start().starts_with(['=', '+', '-', '@']), "{}", cell);
                prop_assert!(!cell.chars().any(char::is_control));
            }
        }

        let mut bytes = Vec::new();
        speedscope::write(selection, &mut bytes).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        prop_assert_eq!(value["profiles"][0]["endValue"].as_u64(), Some(expected));

        let picture = svg::write(selection, &selection.parts[0], Weight::Bytes).unwrap();
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        prop_assert!(roxmltree::Document::parse_with_options(&picture, options).is_ok());

        let page = html::write(&gathered);
        // Two scripts, the data and the code, and nothing else that begins or ends one.
        prop_assert_eq!(page.matches("<script").count(), 2);
        prop_assert_eq!(page.matches("</script").count(), 2);
        prop_assert_eq!(page.matches("<!--").count(), 0);
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let (data, _) = rest.split_once("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        let frames = data["frames"].as_array().unwrap();
        prop_assert_eq!(frames.len(), selection.table.frames.len());
        for (shown, frame) in frames.iter().zip(&selection.table.frames) {
            prop_assert_eq!(shown[0].as_str(), Some(&*frame.label));
        }
    }
}
