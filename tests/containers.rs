//! Containers: processes with files and numbers of their own, and what the documentation says of
//! them.

use std::collections::BTreeSet;

use serde_json::Value;
use vramscope_test_support::{
    Program, Setup, TORCHES, Tool, has_its_turn, missing,
    report::{number, pairs, tensors, with_devices},
    root, skip,
};
use yaml_rust2::{Yaml, YamlLoader};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

/// The manifests in docs/containers.md.
fn manifests() -> Vec<Yaml> {
    let docs = std::fs::read_to_string(root().join("docs/containers.md")).unwrap();
    let fences = docs.split("```yaml\n").skip(1);
    fences
        .flat_map(|rest| {
            let text = rest.split("```").next().unwrap();
            YamlLoader::load_from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
        })
        .collect()
}

/// The capabilities that the manifests give, which are the same in all.
fn documented_capabilities() -> Vec<String> {
    let manifests = manifests();
    let [debug, daemon] = &manifests[..] else {
        panic!("{} manifests", manifests.len());
    };
    let container = &daemon["spec"]["template"]["spec"]["containers"][0];
    let lists: BTreeSet<Vec<&str>> = [debug, container]
        .map(|one| {
            let capabilities = &one["securityContext"]["capabilities"];
            assert_eq!(capabilities["drop"][0].as_str(), Some("ALL"));
            let added = capabilities["add"].as_vec().unwrap();
            added.iter().map(|name| name.as_str().unwrap()).collect()
        })
        .into();
    assert_eq!(lists.len(), 1, "{lists:?}");
    lists.into_iter().flatten().map(str::to_owned).collect()
}

#[test]
fn manifests_parse_and_say_what_they_must() {
    assert_eq!(documented_capabilities(), ["BPF", "PERFMON", "SYS_PTRACE"]);
    let daemon = &manifests()[1];
    assert_eq!(daemon["kind"].as_str(), Some("DaemonSet"));
    let pod = &daemon["spec"]["template"]["spec"];
    assert_eq!(pod["hostPID"].as_bool(), Some(true));
    assert_ne!(
        pod["containers"][0]["securityContext"]["privileged"].as_bool(),
        Some(true)
    );
    // Each volume that is mounted is there.
    let names = |list: &Yaml| -> BTreeSet<String> {
        let entries = list.as_vec().unwrap().iter();
        entries
            .map(|entry| entry["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(&pod["containers"][0]["volumeMounts"]),
        names(&pod["volumes"])
    );
    let labels = &daemon["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&daemon["spec"]["selector"]["matchLabels"], labels);
}

/// Whether this machine lets us make namespaces as a container's.
fn no_namespaces() -> Option<String> {
    let unshare = std::process::Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--pid",
            "--mount",
            "--fork",
            "true",
        ])
        .output();
    match unshare {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!(
            "unshare: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

#[test]
fn a_container_has_its_own_files_and_numbers() {
    let tool = tool();
    if let Some(reason) = missing(&tool).or_else(no_namespaces) {
        skip("a_container_has_its_own_files_and_numbers", &reason);
        return;
    }
    for (number, torch) in TORCHES.into_iter().enumerate() {
        if has_its_turn(number) {
            container(&tool, torch);
        }
    }
}

fn container(tool: &Tool, torch: &str) {
    let front = std::process::Command::new(root().join("tests/programs/tree/container"));
    let script = "/app/contained.py";
    let mut program = Program::start_behind(front, &Setup::new(torch), script.as_ref(), &[]);
    assert_eq!(program.expect("ready"), "1");
    let front = program.pid();
    let children = std::fs::read_to_string(format!("/proc/{front}/task/{front}/children"));
    let pid: u32 = children.unwrap().trim().parse().unwrap();

    // Nothing but the three capabilities, of which the documentation speaks.
    let capabilities = documented_capabilities()
        .iter()
        .fold("-all".to_owned(), |list, name| {
            format!("{list},+{}", name.to_lowercase())
        });
    let with_these = std::process::Command::new("setpriv")
        .args(["--bounding-set", &capabilities, "--inh-caps", "-all"])
        .arg(env!("CARGO_BIN_EXE_vramscope"))
        .args([
            "attach",
            &pid.to_string(),
            "--headless",
            "--json",
            "--duration",
            "3",
        ])
        .output()
        .expect("setpriv (util-linux) starts");
    let said = String::from_utf8_lossy(&with_these.stderr);
    assert!(with_these.status.success(), "{capabilities}: {said}");
    assert!(!said.contains("does not tell"), "{said}");
    let report: Value = serde_json::from_slice(&with_these.stdout).unwrap();
    assert_eq!(report["devices"][0]["sites"][0]["file"], script, "{report}");

    // Its number inside is somebody else's here.
    let wrong = tool.run(&["attach", "1", "--headless", "--duration", "1"]);
    assert_eq!(wrong.status.code(), Some(3), "{wrong:?}");
    assert!(wrong.stderr.contains(&format!("attach {pid}")), "{wrong:?}");

    let code = std::fs::read_to_string(root().join("tests/programs/tree/contained.py")).unwrap();
    let line = code
        .lines()
        .position(|line| line.contains("kept.append"))
        .unwrap() as u64
        + 1;
    let check = |report: &Value, process: &Value, device: &Value, backend: &str| {
        assert_eq!(report["lost"]["events"], 0, "{backend}: {report}");
        assert_eq!(process["python"], "3.12.1", "{backend}: {process}");
        assert!(
            process["torch"].as_str().unwrap().starts_with(torch),
            "{process}"
        );
        assert!(
            process["command"].as_str().unwrap().contains(script),
            "{process}"
        );
        let first = &device["sites"][0];
        assert_eq!(first["file"], script, "{backend}: {device}");
        assert_eq!(first["line"], line, "{backend}: {device}");
        // Read from the container's files.
        let source = first["source"].as_str();
        assert_eq!(
            source,
            Some("kept.append(model(probe).mean())"),
            "{backend}: {first}"
        );
    };
    for backend in [&["--inject"][..], &[]] {
        let attached = tool.attach(pid, backend);
        for _ in 0..4 {
            program.expect_anew("step");
        }
        let report = attached.interrupt().json();
        check(
            &report,
            &report["process"],
            &report["devices"][0],
            &format!("{backend:?}"),
        );
    }
    // From the process that started it, to its end.
    let mut attached = tool.attach(front, &[]);
    for _ in 0..4 {
        program.expect_anew("step");
    }
    program.say("");
    let words = pairs(&format!("allocated {}", program.expect("allocated")));
    let run = attached.wait();
    assert!(program.finish().success());
    let report = run.json();
    let processes = with_devices(&report);
    let process = processes[&u64::from(pid)];
    let device = tensors(process);
    check(&report, process, device, "tree");
    assert_eq!(number(device, "allocated"), words["allocated"]);
    assert_eq!(number(device, "reserved"), words["reserved"]);
}
