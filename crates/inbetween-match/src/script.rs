//! A scripted path: what the player wants over time, as a text file.
//!
//! ```toml
//! duration_s = 6.0
//! [[step]]
//! at_s = 0.0
//! speed_m_s = 1.4
//! heading_deg = 0       # 0 is the schema's forward direction, positive to the left
//! [[step]]
//! at_s = 3.0
//! speed_m_s = 1.4
//! heading_deg = 90
//! facing_deg = 0        # where to look, if not where it goes
//! exclude = ["crouch"]  # categories by name, number or as in the schema
//! ```

use inbetween::glam::DVec3;
use inbetween::math;

use crate::categories::Filter;
use crate::error::MatchError;
use crate::play::Input;
use crate::schema::{Fields, Schema};

/// What the player wants from a moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// From here on, in seconds.
    pub at_s: f64,
    /// What is wanted.
    pub input: Input,
}

/// A scripted path.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Steps by increasing time; the first at 0.
    pub steps: Vec<Step>,
    /// Its length, seconds.
    pub duration_s: f64,
}

impl Script {
    /// Reads a script; directions are by the schema's forward direction, categories by its names.
    ///
    /// # Errors
    /// Text that is no TOML, unknown or missing keys, steps out of order.
    pub fn read(text: &str, schema: &Schema) -> Result<Self, MatchError> {
        let wrong = |text: String| MatchError::Schema(format!("script: {text}"));
        let table: toml::Table =
            text.parse().map_err(|e: toml::de::Error| wrong(e.to_string().trim_end().to_owned()))?;
        let mut fields = Fields::new(&table, "script".into());
        let mut steps: Vec<Step> = Vec::new();
        for (number, table) in fields.tables("step")?.into_iter().enumerate() {
            let mut f = Fields::new(table, format!("script: step {}", number + 1));
            let at_s = f.number_or("at_s", if number == 0 { 0.0 } else { f64::NAN }).unwrap_or(f64::NAN);
            let before = steps.last().map_or(f64::NEG_INFINITY, |s| s.at_s);
            if at_s.is_nan() || at_s <= before || (number == 0) != (at_s == 0.0) {
                return Err(f.wrong("at_s", "a time after the step before; the first step is at 0"));
            }
            let speed = f.number_or("speed_m_s", 0.0)?;
            if !(0.0..=100.0).contains(&speed) {
                return Err(f.wrong("speed_m_s", "a speed from 0 to 100 m/s"));
            }
            let turned = |deg: f64| math::axis_angle(DVec3::Y, deg.to_radians()) * schema.forward;
            let heading = f.number_or("heading_deg", 0.0)?;
            let facing = f.number_or("facing_deg", f64::MAX)?;
            let filter = Filter {
                include: f.bits("include", schema)?,
                exclude: f.bits("exclude", schema)?,
                ..Filter::default()
            };
            f.finish()?;
            steps.push(Step {
                at_s,
                input: Input {
                    velocity: turned(heading) * speed,
                    facing: (facing != f64::MAX).then(|| turned(facing)),
                    filter,
                },
            });
        }
        let Some(last) = steps.last() else {
            return Err(wrong("there is no [[step]]; say what is wanted from at_s = 0 on".into()));
        };
        let duration_s = fields.number_or("duration_s", last.at_s + 3.0)?;
        if !(duration_s > last.at_s && duration_s <= 36_000.0) {
            return Err(fields.wrong("duration_s", "a time after the last step, at most ten hours"));
        }
        fields.finish()?;
        Ok(Self { steps, duration_s })
    }

    /// What is wanted at a time.
    #[must_use]
    pub fn at(&self, time_s: f64) -> Input {
        let next = self.steps.partition_point(|s| s.at_s <= time_s + 1e-9);
        self.steps[next.max(1) - 1].input
    }
}

impl Fields<'_> {
    /// Category bits by names of the schema, bit numbers, or `do-not-use`.
    fn bits(&mut self, key: &'static str, schema: &Schema) -> Result<u32, MatchError> {
        let mut bits = 0;
        for name in self.texts(key)? {
            bits |= schema.category(&name).ok_or_else(|| {
                let known: Vec<&str> = schema.categories.iter().map(|(n, _)| n.as_str()).collect();
                self.wrong(key, &format!("category names ({}) or bit numbers", known.join(", ")))
            })?;
        }
        Ok(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        Schema::read(
            "interval = 0.1\nroot = \"R\"\n[categories]\ncrouch = 3\n[[channel]]\ntype = \"root_turn\"",
        )
        .unwrap()
    }

    #[test]
    fn a_step_holds_until_the_next() {
        let text = "duration_s = 4\n[[step]]\nspeed_m_s = 1\n[[step]]\nat_s = 2\nspeed_m_s = 2\nheading_deg = 90\nexclude = [\"crouch\"]";
        let script = Script::read(text, &schema()).unwrap();
        assert_eq!(script.at(1.9).velocity, DVec3::Z);
        let later = script.at(2.0);
        assert!((later.velocity - DVec3::X * 2.0).length() < 1e-12);
        assert_eq!(later.filter.exclude, 8);
    }

    #[test]
    fn mistakes_are_named() {
        let text = |t: &str| Script::read(t, &schema()).unwrap_err().to_string();
        assert!(text("").contains("no [[step]]"));
        assert!(text("[[step]]\nat_s = 1").contains("at_s"));
        assert!(text("[[step]]\n[[step]]\nat_s = 0").contains("step 2"));
        assert!(text("[[step]]\nspeed = 1").contains("speed_m_s"));
        assert!(text("[[step]]\nexclude = [\"jump\"]").contains("crouch"));
        assert!(text("duration_s = -1\n[[step]]").contains("duration_s"));
    }
}
