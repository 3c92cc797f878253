// The style sheet of report.html. Colors of series keep their distance for color-blind readers (after Okabe and Ito).
#pragma once

namespace octet::report {

inline constexpr const char* kHtmlStyle = R"css(
:root{color-scheme:light dark;--page:#f5f6f8;--card:#fff;--ink:#1c2330;--soft:#5b6472;--line:#e1e4ea;--grid:#e8eaef;
--good:#14804a;--warning:#a15c00;--bad:#c02b2b;--s1:#0072b2;--s2:#d55e00;--s3:#009e73;--s4:#b04f8f;--s5:#a17a00;--s6:#3d9bd6}
@media (prefers-color-scheme:dark){:root{--page:#12151b;--card:#1b2028;--ink:#e6e9ef;--soft:#98a2b3;--line:#2c333f;
--grid:#2a303b;--good:#4cc38a;--warning:#f0b355;--bad:#ff7b72;--s1:#56b4e9;--s2:#ff8f45;--s3:#2fc79c;--s4:#dc8fc0;
--s5:#e6c84f;--s6:#9ab8ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
-webkit-text-size-adjust:100%}
main{max-width:1180px;margin:0 auto;padding:32px 20px 56px}
header{margin-bottom:24px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:16px;margin:0 0 12px}
p{margin:0}
.subtitle{font-size:17px}
.origin,.note,.hint{color:var(--soft);font-size:13px}
.note{margin-top:10px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:14px;margin-bottom:18px}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tile{padding:14px 16px;border-top:3px solid var(--line)}
.tile .label{color:var(--soft);font-size:13px}
.tile .value{font-size:26px;font-weight:650;line-height:1.25;font-variant-numeric:tabular-nums}
.good{border-top-color:var(--good)}.good .value{color:var(--good)}
.warning{border-top-color:var(--warning)}.warning .value{color:var(--warning)}
.bad{border-top-color:var(--bad)}.bad .value{color:var(--bad)}
.card{padding:18px 20px;margin:0 0 18px}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:18px;margin-bottom:18px}
.grid>.card{margin:0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:7px 14px 7px 0;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:600;font-size:13px}
tbody tr:last-child td{border-bottom:0}
tbody tr:hover td{background:color-mix(in srgb,var(--s1) 7%,transparent)}
.n{text-align:right}
td:last-child,th:last-child{padding-right:0}
summary{cursor:pointer;color:var(--soft);margin-bottom:8px}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;color:var(--soft);margin-bottom:8px}
.legend span::before{content:"";display:inline-block;width:14px;height:4px;border-radius:2px;margin:0 6px 3px 0;
background:var(--c)}
.chart{width:100%;height:auto;display:block}
.chart text{font-size:11.5px;fill:var(--soft)}
.chart .grid{stroke:var(--grid)}
.series path{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}
.series circle{fill:var(--c)}
.bars{display:grid;gap:5px;font-size:13px}
.bar{display:grid;grid-template-columns:minmax(90px,26%) 1fr minmax(80px,auto);gap:12px;align-items:center}
.name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.track{position:relative;height:14px;background:var(--grid);border-radius:3px;overflow:hidden}
.track i{position:absolute;top:0;bottom:0;min-width:1px;background:var(--c);border-radius:3px}
.strip{height:26px;background:var(--grid);border-radius:3px;overflow:hidden}
.strip svg{width:100%;height:100%;display:block}
.matrix{width:auto}.matrix td,.matrix th{padding:5px 9px;border:1px solid var(--line)}
.matrix td{background:color-mix(in srgb,var(--c) var(--share),transparent)}
.amount{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(320px,100%),1fr));gap:6px 28px;margin:0}
.facts div{display:flex;justify-content:space-between;gap:16px;border-bottom:1px solid var(--line);padding:4px 0}
dt{color:var(--soft)}dd{margin:0;text-align:right;overflow-wrap:anywhere}
ul{margin:0;padding-left:20px}
img{max-width:100%;display:block;border-radius:6px}
@media print{body{background:#fff}.card,.tile{break-inside:avoid}details>*{display:block}}
)css";

}  // namespace octet::report
