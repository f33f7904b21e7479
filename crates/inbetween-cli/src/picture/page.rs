//! The frame of every page that is written: one HTML file with its style inside, which needs no
//! network and reads in light, dark and print.

use super::svg::{escape, style};

const CSS: &str = "
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--text);font:15px/1.5 system-ui,sans-serif}
main{max-width:980px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px;font-weight:650}
h2{font-size:19px;margin:40px 0 8px;font-weight:600;overflow-wrap:anywhere}
h3{font-size:15px;margin:24px 0 4px;font-weight:600}
p{margin:6px 0}.quiet{color:var(--quiet)}code{font-size:.92em;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:12px;margin:20px 0}
.tile{border:1px solid var(--frame);border-radius:10px;padding:12px 14px}
.tile b{display:block;font-size:24px;line-height:1.25;font-weight:650;font-variant-numeric:tabular-nums}
.tile span{color:var(--quiet);font-size:13px}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th{text-align:left;color:var(--quiet);font-weight:500;font-size:12.5px;border-bottom:1px solid var(--frame);padding:4px 10px 4px 0}
td{border-bottom:1px solid var(--grid);padding:7px 10px 7px 0;vertical-align:middle}
td a{color:inherit;overflow-wrap:anywhere}
.bar{position:relative;height:9px;width:100%;min-width:90px;background:var(--grid);border-radius:5px;overflow:hidden}
.bar i{position:absolute;inset:0 auto 0 0;border-radius:5px;background:var(--s0)}
.bar.b i{background:var(--s2)}.bar.e i{background:var(--error)}
.cost{display:inline-block;height:9px;background:var(--s0);vertical-align:middle;border-radius:3px}
.num{color:var(--quiet);font-size:12.5px;white-space:nowrap}
.worst{border-left:4px solid var(--mark);padding:6px 14px;margin:12px 0;background:color-mix(in srgb,var(--mark) 7%,transparent);border-radius:0 8px 8px 0}
.good{color:var(--s2);font-weight:600}
svg{display:block;width:100%;height:auto;margin:6px 0}
pre{background:var(--grid);border-radius:8px;padding:10px 12px;font-size:12.5px;line-height:1.45;overflow:auto;max-height:26em;margin:8px 0}
pre b{font-weight:650}
details{margin:10px 0}summary{cursor:pointer;color:var(--quiet)}
ul{margin:6px 0;padding-left:20px}li{overflow-wrap:anywhere}
@media print{main{max-width:none;padding:0}section,svg,tr{break-inside:avoid}details{display:none}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
";

/// A page of that title, which stands at its head too. `body` is HTML.
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{0}</title><style>{1}{CSS}</style></head>\
         <body><main><h1>{0}</h1>{body}</main></body></html>\n",
        escape(title),
        style()
    )
}
