//! `doctor`: every precondition, its state, the exact fix.

use std::{fmt::Write as _, process::ExitCode};

use vramscope_collector::escape;
use vramscope_events::ProbeState;
use vramscope_tracer::{
    Prospect,
    inject::{can_inject, library},
    inspect,
    kernel::{self, Check, Standing},
};

use crate::{cli::DoctorArgs, exit::CANNOT_ATTACH, output};

/// Longest line of a command that is printed.
const COMMAND_COLUMNS: usize = 100;

/// `vramscope doctor [PID]`.
pub fn doctor(options: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut out = String::new();
    let mut good = true;
    out.push_str("This machine\n");
    for check in kernel::checks() {
        good &= check.standing != Standing::Missing;
        push(&mut out, &check);
    }
    match library::find(None) {
        Ok(path) => line(
            &mut out,
            Standing::Good,
            "library",
            &path.display().to_string(),
        ),
        Err(places) => {
            let places: Vec<_> = places
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            let text = format!(
                "for `run` and `attach --inject`: not at {}\nbuild it with `make build`",
                places.join(" or ")
            );
            line(&mut out, Standing::Reduced, "library", &text);
        }
    }
    if let Some(pid) = options.pid {
        writeln!(out, "Process {pid}")?;
        match inspect(pid) {
            Ok(prospect) => {
                good &= process(&mut out, &prospect);
                match can_inject(pid) {
                    Ok(()) => line(&mut out, Standing::Good, "--inject", "possible"),
                    Err(error) => {
                        line(&mut out, Standing::Reduced, "--inject", &error.to_string());
                    }
                }
            }
            Err(error) => {
                good = false;
                line(&mut out, Standing::Missing, "process", &error.to_string());
            }
        }
    } else {
        out.push_str("Name a process to check it as well: vramscope doctor PID\n");
    }
    out.push_str(if good {
        "Ready to attach.\n"
    } else {
        "Attaching cannot work yet: see what is marked `missing`.\n"
    });
    output::stdout(out.as_bytes())?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(CANNOT_ATTACH)
    })
}

fn push(out: &mut String, check: &Check) {
    let mut text = check.found.clone();
    if !check.remedy.is_empty() {
        text.push('\n');
        text.push_str(&check.remedy);
    }
    line(out, check.standing, check.name, &text);
}

fn line(out: &mut String, standing: Standing, name: &str, text: &str) {
    let word = match standing {
        Standing::Good => "ok",
        Standing::Reduced => "reduced",
        Standing::Missing => "missing",
    };
    let mut lines = text.lines();
    let first = escape::text(lines.next().unwrap_or_default());
    out.push_str(&format!("  {word:<8}{name:<12}{first}\n"));
    for more in lines {
        out.push_str(&format!("{:22}{}\n", "", escape::text(more.trim())));
    }
}

fn process(out: &mut String, prospect: &Prospect) -> bool {
    let info = &prospect.info;
    let command = escape::line(&info.command, COMMAND_COLUMNS);
    line(out, Standing::Good, "command", &command);
    let mut good = true;
    match &prospect.python {
        Ok(python) if python.tested => {
            line(out, Standing::Good, "Python", &python.version.to_string());
        }
        Ok(python) => line(
            out,
            Standing::Reduced,
            "Python",
            &format!(
                "{}: known from its published layout, never compared with a running one",
                python.version
            ),
        ),
        Err(error) => {
            good = false;
            line(out, Standing::Missing, "Python", &error.to_string());
        }
    }
    match &info.torch {
        Some(version) => line(out, Standing::Good, "PyTorch", version),
        None => line(
            out,
            Standing::Reduced,
            "PyTorch",
            "not loaded, or its version cannot be read",
        ),
    }
    if let Err(error) = prospect.check() {
        line(out, Standing::Missing, "to trace", &error.to_string());
        return false;
    }
    if let Some(ahead) = &prospect.plan.ahead {
        let path = ahead.library.path.display();
        let text = format!("not loaded yet; when it is, it will be\n{path}");
        line(out, Standing::Good, "CUDA driver", &text);
    }
    probes(out, prospect);
    good
}

/// Probes that stand alike are told together: a library that is not loaded is said once.
fn probes(out: &mut String, prospect: &Prospect) {
    let mut told: Vec<(Standing, String, Vec<&str>)> = Vec::new();
    for probe in &prospect.plan.probes {
        let (standing, text) = match &probe.view.state {
            ProbeState::Attached => (Standing::Good, &probe.view.cost_note),
            ProbeState::Absent { consequence } => (Standing::Reduced, consequence),
            ProbeState::Failed { reason } => (Standing::Missing, reason),
        };
        match told
            .iter_mut()
            .find(|(known, same, _)| *known == standing && same == text)
        {
            Some((_, _, names)) => names.push(&probe.view.name),
            None => told.push((standing, text.clone(), vec![&probe.view.name])),
        }
    }
    for (standing, text, names) in told {
        line(
            out,
            standing,
            "probe",
            &format!("{}\n{text}", names.join(", ")),
        );
    }
}
