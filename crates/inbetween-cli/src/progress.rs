//! A bar for work that takes over a second, on a terminal only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that appears after a second and goes away when dropped.
pub struct Progress {
    bar: ProgressBar,
    done: Arc<AtomicBool>,
}

impl Progress {
    /// A bar over `steps` steps; `what` stands before it.
    pub fn new(steps: usize, what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} [{bar:32}] {pos}/{len} {elapsed}");
        bar.set_style(style.expect("the template is fixed").progress_chars("=> "));
        bar.set_message(what.to_owned());
        let done = Arc::new(AtomicBool::new(false));
        let (later, stop) = (bar.clone(), done.clone());
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(1));
            if !stop.load(Ordering::Acquire) {
                // Draws nothing where standard error is not a terminal.
                later.set_draw_target(ProgressDrawTarget::stderr());
                later.enable_steady_tick(Duration::from_millis(200));
            }
        });
        Self { bar, done }
    }

    /// One more step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        self.bar.finish_and_clear();
    }
}
