//! tmp
use inbetween::*;
struct R(Vec<u8>, usize);
impl R {
    fn n<const N: usize>(&mut self) -> [u8; N] {
        let r = self.0[self.1..self.1 + N].try_into().unwrap();
        self.1 += N;
        r
    }
    fn u(&mut self) -> usize {
        u32::from_le_bytes(self.n()) as usize
    }
    fn f(&mut self) -> f64 {
        f64::from_le_bytes(self.n())
    }
    fn s(&mut self) -> String {
        let n = self.u();
        let s = String::from_utf8_lossy(&self.0[self.1..self.1 + n]).into();
        self.1 += n;
        s
    }
}
fn load(p: &str) -> (Skeleton, Vec<Clip>) {
    let mut r = R(std::fs::read(p).unwrap(), 0);
    let joints = (0..r.u())
        .map(|_| {
            let parent = i32::from_le_bytes(r.n());
            let v: Vec<f64> = (0..10).map(|_| r.f()).collect();
            let name = r.s();
            Joint::new(
                name,
                (parent >= 0).then_some(parent as usize),
                Transform {
                    translation: glam::DVec3::from_slice(&v),
                    rotation: glam::DQuat::from_slice(&v[3..]).normalize(),
                    scale: glam::DVec3::from_slice(&v[7..]),
                },
            )
        })
        .collect();
    let skeleton = Skeleton::new(joints).unwrap();
    let clips = (0..r.u())
        .map(|_| {
            let name = r.s();
            let mut c = Clip::new(name, 0.0, 1e3).unwrap();
            for _ in 0..r.u() {
                let (node, p, it, n) = (r.u(), r.u(), r.u(), r.u());
                let t: Vec<f64> = (0..n).map(|_| r.f()).collect();
                let v: Vec<f64> = (0..n * if p == 1 { 4 } else { 3 }).map(|_| r.f()).collect();
                let kind = if p == 1 { ValueKind::Rotation } else { ValueKind::Vector(3) };
                let curve =
                    if it == 1 { Curve::step(kind, t, v) } else { Curve::linear(kind, t, v) }.unwrap();
                c.tracks.push(Track::new(
                    Binding::node(
                        node,
                        "x",
                        [Property::Translation, Property::Rotation, Property::Scale][p].clone(),
                    ),
                    TrackData::Curve(curve),
                    vec![],
                ));
            }
            c
        })
        .collect();
    (skeleton, clips)
}
fn main() {
    let cubic = std::env::var("CUBIC").is_ok();
    let mut total = (0, 0);
    for p in std::env::args().skip(1) {
        let (s, clips) = load(&p);
        let name = p.rsplit('/').next().unwrap();
        for c in &clips {
            let clock = std::time::Instant::now();
            let mut o = reduce::Options::world(0.001);
            if cubic {
                o.keys = reduce::Keys::Cubic;
            }
            let r = reduce::reduce(c, &s, &o).unwrap();
            total.0 += r.report.source_keys;
            total.1 += r.report.keys;
            println!(
                "{name:24} {:20} {:7} {:7} {:5.1}% {:.4} mm holds {} flat {} steps {} {:.2}s",
                c.name,
                r.report.source_keys,
                r.report.keys,
                r.report.percent(),
                r.report.measured.world_error() * 1e3,
                r.report.holds(),
                r.report.flattened().count(),
                r.report.tracks.iter().filter(|t| t.fate == reduce::Fate::StepRestored).count(),
                clock.elapsed().as_secs_f64()
            );
        }
    }
    println!("{total:?} {}", total.1 as f64 / total.0 as f64);
}
