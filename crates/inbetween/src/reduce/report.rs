//! What a reduction did, for a person to read.

use std::fmt;

use crate::metric::{Measured, Unit};

/// What became of a track.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It has fewer keys, or the same.
    Reduced,
    /// It was left as it is, for the reason given.
    Kept(&'static str),
    /// It moved so little that one key is left.
    Flattened {
        /// How far off that is at most, in the track's unit.
        error: f64,
    },
    /// It stood still at rest, and nothing else moves what it drives.
    Dropped,
    /// It was a step that had been baked, and is a step again.
    StepRestored,
}

/// One track of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackReport {
    /// Its index in the source.
    pub track: usize,
    /// What it drives.
    pub target: String,
    /// Which property.
    pub property: String,
    /// Times at which it had a key.
    pub source_keys: usize,
    /// Times at which it has one now.
    pub keys: usize,
    /// What became of it.
    pub fate: Fate,
    /// Unit of its errors.
    pub unit: Unit,
    /// Its own tolerance in that unit, if it has one.
    pub tolerance: Option<f64>,
}

/// What a reduction of one clip did.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Name of the clip.
    pub clip: String,
    /// Keys before: the times at which a track has a key, summed over tracks.
    pub source_keys: usize,
    /// Keys after, counted in the same way.
    pub keys: usize,
    /// The bound in the world, metres, if there was one.
    pub bound: Option<f64>,
    /// Every track of the source.
    pub tracks: Vec<TrackReport>,
    /// The errors of the result against the source, measured by [`crate::metric`].
    pub measured: Measured,
    /// What else a user should know.
    pub notes: Vec<String>,
}

impl Report {
    /// Keys left, in percent of the source's; 100 for a clip that had none.
    pub fn percent(&self) -> f64 {
        if self.source_keys == 0 { 100.0 } else { 100.0 * self.keys as f64 / self.source_keys as f64 }
    }

    /// True if every bound that was asked for holds: the world's, each track's own, and steps exactly.
    pub fn holds(&self) -> bool {
        // A tolerance met to the last bit may be passed by as much when measured in another way.
        let within = |value: f64, limit: f64| value <= limit * (1.0 + 1e-9) + 1e-12;
        self.bound.is_none_or(|bound| within(self.measured.world_error(), bound))
            && self.measured.broken_steps().next().is_none()
            && self
                .measured
                .tracks
                .iter()
                .all(|t| self.tracks[t.track].tolerance.is_none_or(|limit| within(t.value, limit)))
    }

    /// The tracks that were flattened to one key.
    pub fn flattened(&self) -> impl Iterator<Item = &TrackReport> {
        self.tracks.iter().filter(|t| matches!(t.fate, Fate::Flattened { .. }))
    }

    /// The tracks that were dropped.
    pub fn dropped(&self) -> impl Iterator<Item = &TrackReport> {
        self.tracks.iter().filter(|t| t.fate == Fate::Dropped)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} of {} keys remain ({:.1} %)",
            self.clip,
            self.keys,
            self.source_keys,
            self.percent()
        )?;
        if let Some(world) = &self.measured.world {
            write!(f, "; worst in the world {} m at {}, {} s", world.value, world.target, world.time)?;
        }
        let own = |t: &&crate::metric::TrackError| !t.moves_node && t.value > 0.0;
        if let Some(worst) =
            self.measured.tracks.iter().filter(own).max_by(|a, b| a.value.total_cmp(&b.value))
        {
            write!(
                f,
                "; worst value {} {} at {}.{}, {} s",
                worst.value,
                worst.unit.symbol(),
                worst.target,
                worst.property,
                worst.time
            )?;
        }
        for track in &self.tracks {
            let name = format_args!("{}.{}", track.target, track.property);
            match &track.fate {
                Fate::Flattened { error } if *error > 0.0 => {
                    write!(
                        f,
                        "\nflattened {name} to one key, off by at most {error} {}",
                        track.unit.symbol()
                    )?;
                }
                Fate::Flattened { .. } if track.source_keys > 1 => {
                    write!(f, "\nconstant {name}: one key of {} remains", track.source_keys)?;
                }
                Fate::Dropped => write!(f, "\nremoved {name}: it stands still at rest and no clip moves it")?,
                Fate::StepRestored => {
                    write!(f, "\nstep {name}: changes baked into two keys a frame apart are steps again")?;
                }
                Fate::Kept(why) => write!(f, "\nkept {name} as it is: {why}")?,
                Fate::Flattened { .. } | Fate::Reduced => {}
            }
        }
        for note in &self.notes {
            write!(f, "\n{note}")?;
        }
        Ok(())
    }
}
