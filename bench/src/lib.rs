//! Races: several ways of doing the same work, timed in turns in one process.
//!
//! A shared machine is noisy, so a single figure means little. A race runs its entrants in turns,
//! round after round, and reports for each the least and the median time per unit of work, and the
//! ratio of its least to that of the first entrant. Quote the ratios.

use std::hint::black_box;
use std::time::Instant;

/// One way of doing the work.
pub struct Entrant<'a> {
    name: String,
    run: Box<dyn FnMut() + 'a>,
}

/// What a race found for one entrant, in nanoseconds per unit of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// Its name.
    pub name: String,
    /// Least time of all rounds.
    pub least: f64,
    /// Median time of all rounds.
    pub median: f64,
    /// 99th percentile of all rounds.
    pub p99: f64,
    /// Its least over the first entrant's least.
    pub ratio: f64,
}

/// Several entrants and how much work one run of each is.
pub struct Race<'a> {
    title: String,
    units: f64,
    unit: &'static str,
    rounds: usize,
    entrants: Vec<Entrant<'a>>,
}

impl<'a> Race<'a> {
    /// A race in which one run does `units` units of work, called `unit` in the table.
    pub fn new(title: impl Into<String>, units: usize, unit: &'static str) -> Self {
        Self { title: title.into(), units: units.max(1) as f64, unit, rounds: 60, entrants: Vec::new() }
    }

    /// How many rounds; 60 unless said otherwise. `INBETWEEN_BENCH_ROUNDS` overrides it.
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds;
        self
    }

    /// Adds an entrant; the first is the yardstick. Its result is kept from the optimiser.
    pub fn with<R>(mut self, name: impl Into<String>, mut run: impl FnMut() -> R + 'a) -> Self {
        self.entrants.push(Entrant {
            name: name.into(),
            run: Box::new(move || {
                black_box(run());
            }),
        });
        self
    }

    /// Runs all rounds, prints a table, and gives what it found, in the order of entry.
    pub fn run(mut self) -> Vec<Finish> {
        let told = std::env::var("INBETWEEN_BENCH_ROUNDS").ok().and_then(|r| r.parse().ok());
        let rounds: usize = told.unwrap_or(self.rounds).max(1);
        let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds); self.entrants.len()];
        for e in &mut self.entrants {
            (e.run)();
        }
        for _ in 0..rounds {
            for (e, times) in self.entrants.iter_mut().zip(&mut times) {
                let from = Instant::now();
                (e.run)();
                times.push(from.elapsed().as_nanos() as f64 / self.units);
            }
        }
        let mut finishes: Vec<Finish> = Vec::new();
        for (e, times) in self.entrants.iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            let least = times[0];
            finishes.push(Finish {
                name: e.name.clone(),
                least,
                median: times[times.len() / 2],
                p99: times[(times.len() * 99 / 100).min(times.len() - 1)],
                ratio: finishes.first().map_or(1.0, |f: &Finish| least / f.least),
            });
        }
        println!("\n{} (ns per {}, {rounds} rounds in turns)", self.title, self.unit);
        println!("{:<44} {:>10} {:>10} {:>10} {:>8}", "", "least", "median", "p99", "ratio");
        for f in &finishes {
            println!("{:<44} {:>10.2} {:>10.2} {:>10.2} {:>8.2}", f.name, f.least, f.median, f.p99, f.ratio);
        }
        finishes
    }
}

/// A repeatable stream of numbers, for data and for orders of access.
#[derive(Clone, Debug)]
pub struct Stream(u64);

impl Stream {
    /// A stream from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    /// The next number, 0..1.
    pub fn unit(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The next whole number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_reports_every_entrant_against_the_first() {
        let finishes = Race::new("sum", 1000, "number")
            .rounds(3)
            .with("once", || (0..1000u64).map(black_box).sum::<u64>())
            .with("twenty times", || (0..20_000u64).map(black_box).sum::<u64>())
            .run();
        assert_eq!(finishes.len(), 2);
        assert_eq!(finishes[0].ratio, 1.0);
        assert!(finishes.iter().all(|f| f.least <= f.median && f.median <= f.p99));
    }
}
