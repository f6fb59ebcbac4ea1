//! Writes every format of every stream to a folder, for a look: `EXPORTS=DIR cargo test -p
//! vramscope-export --test write_all`.
mod support;
use vramscope_export::*;
#[test]
fn write_all() {
    let Some(folder) = std::env::var_os("EXPORTS") else { return };
    let folder = std::path::PathBuf::from(folder);
    let mut all = support::recorded(&["01_running_loss_keeps_graph", "leak_server_keeps_answers", "33_neg_adam_state_staged_unfreeze"]);
    all.push(support::small());
    all.push(support::hostile());
    for stream in all {
        let dir = folder.join(&stream.name);
        std::fs::create_dir_all(&dir).unwrap();
        let g = stream.survivors();
        let s = &g.selection;
        std::fs::write(dir.join("folded.txt"), folded::write(s, Weight::Bytes)).unwrap();
        let create = |name: &str| std::fs::File::create(dir.join(name)).unwrap();
        csv::write(s, create("sites.csv")).unwrap();
        speedscope::write(s, create("speedscope.json")).unwrap();
        pprof::write(s, create("pprof.pb.gz")).unwrap();
        firefox::write(&g, create("firefox.json")).unwrap();
        perfetto::write(&g, create("trace.pftrace")).unwrap();
        torch_snapshot::write(&g, create("snapshot.pickle")).unwrap();
        let mut e = parquet::Events::new(create("events.parquet")).unwrap();
        e.push(&stream.records).unwrap();
        e.finish().unwrap();
        parquet::stacks(s, create("stacks.parquet")).unwrap();
        parquet::sites(s, create("sites.parquet")).unwrap();
        std::fs::write(dir.join("page.html"), html::write(&g)).unwrap();
        std::fs::write(dir.join("flame.svg"), svg::write(s, s.largest().unwrap(), Weight::Bytes).unwrap()).unwrap();
    }
}
