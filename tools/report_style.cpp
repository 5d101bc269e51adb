#include "report_page.hpp"

namespace esker::cli {

namespace {

constexpr std::string_view style = R"css(
:root{color-scheme:light dark;--page:#f6f7f9;--panel:#fff;--ink:#1b2430;--soft:#5d6b7c;
--line:#e2e6ec;
--track:#e9edf2;--hit:#1f8a70;--miss:#e08e45;--published:#3b74c4;--used:#8e62b8;--kept:#0d5c63;
--ready:#2a9d8f;--busy:#e9c46a;--bad:#d1495b;--cold:#5b8def;--own:#8d99ae;--other:#b08968;
--free:#c3ccd8;
--a0:#08306b;--a1:#0b4a8f;--a2:#2068ad;--a3:#3f86c4;--a4:#6aa5d5;--a5:#97c1e2;--a6:#c0d8ec;
--a7:#dde6ef;
--b0:#f3e7d7;--b1:#f2cf9f;--b2:#eaaf66;--b3:#d9853b;--b4:#b85c1e;--b5:#7f3a0f;--dark:#16202c;
--pale:#fff}
@media(prefers-color-scheme:dark){:root{--page:#10151c;--panel:#18202a;--ink:#e5eaf1;
--soft:#93a1b3;
--line:#2a3543;--track:#26303d;--hit:#3fb595;--miss:#e69a58;--published:#6b9fe8;--used:#b48ce0;
--kept:#57b8c2;--ready:#2f9c8d;--busy:#c9a54a;--bad:#e0677a;--cold:#6f9cf5;--own:#77849a;
--other:#a5835f;
--free:#3d4a5b;--a0:#d6ecff;--a1:#aad4fb;--a2:#7cb8f0;--a3:#559ade;--a4:#3b7cbf;--a5:#2c5f97;
--a6:#24476e;
--a7:#22364d;--b0:#3a3128;--b1:#5f4729;--b2:#8c6029;--b3:#bb7c2c;--b4:#e3a04a;--b5:#fbd08c;
--dark:#10151c;
--pale:#f2f5f9}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1200px;margin:0 auto;padding:28px 20px 48px}
h1{font-size:26px;line-height:1.2;margin:0;overflow-wrap:anywhere}h2{font-size:17px;
margin:0 0 4px}
.sub,.more,.none{color:var(--soft);margin:4px 0 0}.more{margin:8px 0 0;font-size:13px}
section{background:var(--panel);border:1px solid var(--line);border-radius:10px;
padding:18px 20px;margin-top:18px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:14px;
margin-top:20px}
.card{background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:14px 16px}
.card b{display:block;font-size:24px;line-height:1.25;font-weight:650;
font-variant-numeric:tabular-nums}
.card span{color:var(--soft);font-size:13px}.card.alarm b{color:var(--bad)}
svg{display:block;width:100%;height:auto;margin-top:10px}
svg text{font:12px system-ui,sans-serif;fill:var(--soft);pointer-events:none}
svg g:hover rect{opacity:.75}
.rule{stroke:var(--line)}
.hit,.hit rect{fill:var(--hit);background:var(--hit)}.miss,.miss rect{fill:var(--miss);
background:var(--miss)}
.published,.published rect{fill:var(--published);background:var(--published)}
.used,.used rect{fill:var(--used);background:var(--used)}.kept,.kept rect{fill:var(--kept);
background:var(--kept)}
.ready,.ready rect{fill:var(--ready);background:var(--ready)}.busy,.busy rect{fill:var(--busy);
background:var(--busy)}
.bad,.bad rect{fill:var(--bad);background:var(--bad)}.cold,.cold rect{fill:var(--cold);
background:var(--cold)}
.own,.own rect{fill:var(--own);background:var(--own)}.other,.other rect{fill:var(--other);
background:var(--other)}
.free,.free rect{fill:var(--free);background:var(--free)}.track,.track rect{fill:var(--track);
background:var(--track)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:10px 0 0;padding:0;
font-size:13px}
.legend .lead{color:var(--soft)}
.swatch{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:7px}
.swatch.a0{background:var(--a0)}.swatch.a1{background:var(--a1)}.swatch.a2{background:var(--a2)}
.swatch.a3{background:var(--a3)}.swatch.a4{background:var(--a4)}.swatch.a5{background:var(--a5)}
.swatch.a6{background:var(--a6)}.swatch.a7{background:var(--a7)}.swatch.b0{background:var(--b0)}
.swatch.b1{background:var(--b1)}.swatch.b2{background:var(--b2)}.swatch.b3{background:var(--b3)}
.swatch.b4{background:var(--b4)}.swatch.b5{background:var(--b5)}
.plot>input{position:absolute;opacity:0}
.plot>label{display:inline-block;border:1px solid var(--line);padding:3px 14px;
margin:10px -5px 0 0;cursor:pointer;
font-size:13px;color:var(--soft)}
.plot>label:first-of-type{border-radius:7px 0 0 7px}
.plot>label:last-of-type{border-radius:0 7px 7px 0}
#age:checked~label[for=age],#size:checked~label[for=size]{background:var(--ink);
color:var(--panel);border-color:var(--ink)}
#age:focus-visible~label[for=age],
#size:focus-visible~label[for=size]{outline:2px solid var(--published)}
#age:checked~.sizes,#size:checked~.ages{display:none}
.icicle .top rect{fill:var(--track)}.icicle .top text{fill:var(--ink)}
#age:checked~.icicle .a0 rect{fill:var(--a0)}#age:checked~.icicle .a1 rect{fill:var(--a1)}
#age:checked~.icicle .a2 rect{fill:var(--a2)}#age:checked~.icicle .a3 rect{fill:var(--a3)}
#age:checked~.icicle .a4 rect{fill:var(--a4)}#age:checked~.icicle .a5 rect{fill:var(--a5)}
#age:checked~.icicle .a6 rect{fill:var(--a6)}#age:checked~.icicle .a7 rect{fill:var(--a7)}
#size:checked~.icicle .b0 rect{fill:var(--b0)}#size:checked~.icicle .b1 rect{fill:var(--b1)}
#size:checked~.icicle .b2 rect{fill:var(--b2)}#size:checked~.icicle .b3 rect{fill:var(--b3)}
#size:checked~.icicle .b4 rect{fill:var(--b4)}#size:checked~.icicle .b5 rect{fill:var(--b5)}
#age:checked~.icicle :is(.a0,.a1,.a2,.a3) text,#size:checked~.icicle :is(.b3,.b4,
.b5) text{fill:#fff}
#age:checked~.icicle :is(.a4,.a5,.a6,.a7) text,#size:checked~.icicle :is(.b0,.b1,
.b2) text{fill:#16202c}
@media(prefers-color-scheme:dark){
#age:checked~.icicle :is(.a0,.a1,.a2,.a3) text,#size:checked~.icicle :is(.b3,.b4,
.b5) text{fill:#10151c}
#age:checked~.icicle :is(.a4,.a5,.a6,.a7) text,#size:checked~.icicle :is(.b0,.b1,
.b2) text{fill:#f2f5f9}}
.scroll{overflow-x:auto;margin-top:8px}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th{text-align:left;color:var(--soft);font-weight:500;font-size:12.5px}
th,td{padding:5px 14px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;
overflow-wrap:anywhere}
tr:last-child td{border-bottom:0}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
code,.code{font-family:ui-monospace,monospace;font-size:12.5px}
.warn{color:var(--bad)}
.meter{display:inline-block;width:90px;height:8px;border-radius:4px;background:var(--track);
overflow:hidden;margin-right:8px}
.meter i{display:block;height:100%;background:var(--hit)}
@media print{section,.card{break-inside:avoid}}
)css";

}  // namespace

std::string_view report_style() noexcept { return style; }

}  // namespace esker::cli
