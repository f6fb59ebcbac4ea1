//! The live view on fixed views, for looking at it and for the tests through a real terminal.
//!
//! `demo [STORY] [--panic] [--thread-panics] [--ends] [--lingers] [--moves] [--recording] [--directory DIR]`: STORY is a fixture (`leak`, `healthy`,
//! `growing`, `no_verdict_yet`, `nothing_yet`, `lost_events`, `four_ranks`, `hostile`) or
//! `many=N`. Prints how it ended.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use vramscope_collector::{fixture, view::View};
use vramscope_events::{Pid, Time};
use vramscope_tui::{Feed, Options, Source};

struct Demo {
    view: Arc<View>,
    ended: Option<String>,
    panics_after: Option<u32>,
    thread_panics: bool,
    /// What is shown every other second.
    other: Option<(Arc<View>, Instant)>,
    span: Option<(Time, Time)>,
}

impl Feed for Demo {
    fn view(&mut self) -> Arc<View> {
        if let Some(left) = &mut self.panics_after {
            *left = left
                .checked_sub(1)
                .unwrap_or_else(|| panic!("the demo was asked to panic"));
        }
        if self.thread_panics {
            self.thread_panics = false;
            let thread = std::thread::spawn(|| panic!("a thread of the demo was asked to panic"));
            // It has: that is what is wanted.
            let _ = thread.join();
        }
        if let Some((other, since)) = &mut self.other
            && since.elapsed() >= Duration::from_secs(1)
        {
            *since = Instant::now();
            std::mem::swap(other, &mut self.view);
        }
        Arc::clone(&self.view)
    }

    fn ended(&self) -> Option<String> {
        self.ended.clone()
    }

    fn span(&self) -> Option<(Time, Time)> {
        self.span
    }

    fn seek(&mut self, moment: Time) {
        let mut view = (*self.view).clone();
        view.now = moment;
        self.view = Arc::new(view);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut demo = Demo {
        view: Arc::new(fixture::leak()),
        ended: None,
        panics_after: None,
        thread_panics: false,
        other: None,
        span: None,
    };
    let mut options = Options::from_environment(Source::Process(Pid(4121)));
    let mut lingers = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--panic" => demo.panics_after = Some(3),
            "--thread-panics" => demo.thread_panics = true,
            "--ends" => demo.ended = Some("process exited".into()),
            "--moves" => demo.other = Some((Arc::new(moved(&demo.view)), Instant::now())),
            "--lingers" => lingers = true,
            "--recording" => {
                demo.span = Some((demo.view.started, demo.view.now));
                options.source = Source::File("run.vrs".into());
            }
            "--directory" => {
                let directory = arguments.next().ok_or("--directory needs a value")?;
                options.output_directory = directory.into();
            }
            story => demo.view = Arc::new(view(story)?),
        }
    }
    let exit = vramscope_tui::run(&mut demo, options)?;
    println!("the live view ended: {exit:?}");
    if lingers {
        loop {
            std::thread::park();
        }
    }
    Ok(())
}

/// A second later: every number is another.
fn moved(view: &View) -> View {
    let mut view = view.clone();
    view.now.0 += 1_000_000_000;
    for device in view
        .processes
        .iter_mut()
        .flat_map(|process| &mut process.devices)
    {
        let mut sites = device.sites.to_vec();
        for site in &mut sites {
            site.live_bytes += 4096;
            site.live_blocks += 1;
        }
        device.sites = sites.into();
    }
    view
}

fn view(story: &str) -> Result<View, Box<dyn Error>> {
    Ok(match story {
        "leak" => fixture::leak(),
        "healthy" => fixture::healthy(),
        "growing" => fixture::growing(),
        "no_verdict_yet" => fixture::no_verdict_yet(),
        "nothing_yet" => fixture::nothing_yet(),
        "lost_events" => fixture::lost_events(),
        "four_ranks" => fixture::four_ranks(),
        "hostile" => fixture::hostile(),
        other => match other.strip_prefix("many=") {
            Some(sites) => fixture::many(sites.parse()?),
            None => return Err(format!("no story {other}").into()),
        },
    })
}
