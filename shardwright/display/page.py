"""The look of the page: light and dark, wide and narrow, on paper."""

from __future__ import annotations

import html

STYLE = """
:root{--bg:#f6f7f9;--card:#fff;--ink:#16202c;--soft:#526071;--line:#d9dfe7;--accent:#0b5cad;--bin:#b9c6d6;
--good:#0f6b3c;--warn:#8a5300;--bad:#b3261e;--goodbg:#e4f4ea;--warnbg:#fdf1dc;--badbg:#fde7e5;
--train:#0072b2;--eval:#ad4800;--test:#007a5a;--other:#a0447a;--focus:#0b5cad;--shade:rgba(22,32,44,.22);
color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--bg:#10151c;--card:#182029;--ink:#e8edf3;--soft:#a3b1c2;--line:#2c3846;
--accent:#7db8f5;--bin:#46566a;--good:#7fd6a4;--warn:#f2c078;--bad:#ff9d94;--goodbg:#153324;--warnbg:#3a2c12;
--badbg:#43201d;--train:#56b4e9;--eval:#f29a4a;--test:#3fc79a;--other:#e29ac2;--focus:#7db8f5;--shade:rgba(0,0,0,.6)}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",
"DejaVu Sans",sans-serif;overflow-wrap:anywhere}
a{color:var(--accent)}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px;border-radius:4px}
.skip{position:absolute;left:-9999px}
.skip:focus{left:12px;top:12px;background:var(--card);padding:8px 14px;z-index:9}
.wrap{max-width:1180px;margin:0 auto;padding-left:20px;padding-right:20px}
header{padding:30px 0 8px}
.kicker{margin:0;color:var(--soft);font-size:13px;letter-spacing:.06em;text-transform:uppercase}
h1{margin:2px 0 4px;font-size:30px;line-height:1.2;letter-spacing:-.01em}
h2{margin:0 0 4px;font-size:21px;letter-spacing:-.01em}
h3{margin:0 0 10px;font-size:15px}
.lead,.note,.figures{color:var(--soft);margin:0 0 14px}
.note,.figures{font-size:13px;margin:10px 0 0}
.figures b{color:var(--ink);font-weight:600}
code{font:12.5px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
nav{position:sticky;top:0;z-index:5;background:var(--bg);border-bottom:1px solid var(--line)}
nav ul{display:flex;gap:4px 18px;list-style:none;margin:0 auto;padding-top:10px;padding-bottom:10px;overflow-x:auto;
white-space:nowrap}
@media (max-width:700px){nav ul{mask-image:linear-gradient(to right,#000 90%,transparent)}}
nav a{text-decoration:none;color:var(--soft);font-size:14px;display:block;padding:2px 0}
nav a:hover{color:var(--accent);text-decoration:underline}
section{padding:30px 0 6px;scroll-margin-top:44px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;margin:18px 0 0;padding:0}
.stat{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.stat dt{color:var(--soft);font-size:13px}
.stat dd{margin:0;font-size:24px;font-weight:650;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.stat dd small{display:block;line-height:1.35;font-size:13px;font-weight:400;color:var(--soft);letter-spacing:0}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(340px,100%),1fr));gap:14px;margin-bottom:14px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;min-width:0;
margin:0 0 14px}
.grid>.card{margin:0}
.fit{grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr))}
.wide{grid-column:1/-1}
.scroll{overflow-x:auto;background:linear-gradient(to right,var(--card) 30%,transparent) 0 0/40px 100% no-repeat local,
linear-gradient(to left,var(--card) 30%,transparent) 100% 0/40px 100% no-repeat local,
linear-gradient(to right,var(--shade),transparent) 0 0/14px 100% no-repeat scroll,
linear-gradient(to left,var(--shade),transparent) 100% 0/14px 100% no-repeat scroll}
.vh{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
.cap{color:var(--soft);font-size:13px;margin:0 0 4px}
th,td{padding:5px 12px 5px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th,td{overflow-wrap:normal}th bdi,td bdi{overflow-wrap:anywhere}
tbody th{font-weight:500;min-width:7.5em}tbody th:has(code){min-width:14em}
td:has(bdi){min-width:8em}td code,thead th{white-space:nowrap}
.same{font-size:26px;font-weight:650;margin:18px 0 0;letter-spacing:-.02em}
thead th{font-weight:600;font-size:13px;color:var(--soft)}
tr:last-child>*{border-bottom:0}
.n{text-align:right;white-space:nowrap}
.bar{display:block;min-width:70px;height:12px;margin-top:5px;border-radius:3px;
background:color-mix(in srgb,var(--bin) 35%,transparent)}
.bar>span{display:block;height:100%;border-radius:3px;background:var(--accent);min-width:1px}
.bar.bad>span{background:var(--bad)}.bar.warn>span{background:var(--warn)}.bar.good>span{background:var(--good)}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--soft);font-size:12px}
.bin{fill:var(--bin)}.axis{stroke:var(--line)}.mark{stroke:var(--bad);stroke-width:1.5}
.line{fill:none;stroke-width:1.6;stroke:currentColor}
.s-train{color:var(--train)}.s-eval{color:var(--eval)}.s-test{color:var(--test)}.s-other{color:var(--other)}
.under{stroke:none;fill:currentColor;opacity:.13}
.line.s-eval{stroke-dasharray:5 3}.line.s-test{stroke-dasharray:2 2}.line.s-other{stroke-dasharray:7 2 2 2}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;margin:0 0 12px;padding:0;font-size:14px}
.legend li{display:flex;align-items:center;gap:7px}
.legend bdi{color:var(--ink)}.legend .all{color:var(--ink)}
.swatch{width:14px;height:14px;border-radius:3px;background:currentColor;flex:none}
.all .swatch{background:var(--bin)}
.findings{list-style:none;margin:0;padding:0;display:grid;gap:8px}
.findings li{border-radius:8px;padding:9px 13px;border-left:4px solid}
.bad-f{background:var(--badbg);border-color:var(--bad)!important}
.warn-f{background:var(--warnbg);border-color:var(--warn)!important}
.good-f{background:var(--goodbg);border-color:var(--good)!important}
.findings b{margin-right:6px}
.bad-f b{color:var(--bad)}.warn-f b{color:var(--warn)}.good-f b{color:var(--good)}
.sheet{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:14px 12px;align-items:start}
figure{margin:0;min-width:0}
.pic{position:relative;background:var(--line);border-radius:6px;overflow:hidden;max-width:100%}
.pic img{display:block;width:100%;height:auto}
.pic .m{position:absolute;inset:0;height:100%}
.gone{display:flex;align-items:center;justify-content:center;color:var(--soft);font-size:13px;min-height:80px;
padding:8px;text-align:center}
figcaption{font-size:12.5px;line-height:1.35;margin-top:5px;color:var(--soft)}
figcaption .k{color:var(--ink);display:block}
.tag{display:inline-block;border:1px solid var(--line);border-radius:99px;padding:0 7px;margin:2px 4px 0 0;
font-size:12px;color:var(--ink)}
.dot{display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:4px;border:1px solid rgba(0,0,0,.25)}
.group{border-top:1px solid var(--line);padding-top:12px;margin-top:12px}
.group:first-of-type{border-top:0;margin-top:0;padding-top:0}
.badge{white-space:nowrap;border-radius:5px;padding:1px 7px;font-size:12.5px;font-weight:600}
.badge.bad{background:var(--badbg);color:var(--bad)}.badge.warn{background:var(--warnbg);color:var(--warn)}
.badge.good{background:var(--goodbg);color:var(--good)}
.heat{display:block;width:100%;height:auto;aspect-ratio:4/3;image-rendering:pixelated;border-radius:6px;
border:1px solid var(--line)}
.heats{display:grid;grid-template-columns:repeat(auto-fill,minmax(180px,1fr));gap:14px}
.switch{display:inline-flex;gap:8px;align-items:center;margin:0 0 12px;font-size:14px;cursor:pointer}
.switch input{width:18px;height:18px;accent-color:var(--accent)}
body:has(#show-masks:not(:checked)) .m{display:none}
details{margin-top:10px}
summary{cursor:pointer;color:var(--accent);font-size:14px;padding:4px 0}
dl.facts{display:grid;grid-template-columns:minmax(120px,max-content) 1fr;gap:6px 18px;margin:0}
dl.facts dt{color:var(--soft)}dl.facts dd{margin:0;min-width:0}
pre{overflow-x:auto;background:var(--bg);border:1px solid var(--line);border-radius:8px;padding:12px;margin:8px 0 0;
white-space:pre-wrap}
footer{color:var(--soft);font-size:13px;padding:26px 0 50px}
@media (max-width:560px){.wrap{padding-left:14px;padding-right:14px}h1{font-size:25px}
.sheet{grid-template-columns:repeat(2,minmax(0,1fr))}
.heats{grid-template-columns:repeat(2,minmax(0,1fr))}.tiles{grid-template-columns:repeat(2,1fr)}
.stat dd{font-size:20px}
dl.facts{grid-template-columns:1fr;gap:0}dl.facts dd{margin-bottom:10px}th,td{padding-right:8px}.bar{min-width:44px}}
@media print{@page{margin:14mm}
:root{--bg:#fff;--card:#fff;--ink:#000;--soft:#333;--line:#bbb;--accent:#333;--bin:#999;--shade:transparent;
--good:#0f6b3c;--warn:#8a5300;--bad:#b3261e;--goodbg:#fff;--warnbg:#fff;--badbg:#fff;
--train:#0072b2;--eval:#ad4800;--test:#007a5a;--other:#a0447a}
body{font-size:9.5pt}h1{font-size:18pt}h2{font-size:13pt}h3,.stat dd,table,.legend,.same{font-size:9.5pt}
.stat{padding:6px 9px}.stat dd,.same{font-size:12pt}.bar{min-width:40px}
.stat dd small,.stat dt,.note,.figures,.cap,figcaption,.tag,.badge,thead th{font-size:8pt}
code{font-size:8pt}th,td{padding:2px 8px 2px 0}
nav,.skip,.switch{display:none}details::details-content{content-visibility:visible;display:block}
summary{color:#000}h2,h3,.cap,.lead,.note{break-after:avoid}.stat,figure,tr,.group>p,svg{break-inside:avoid}
.grid>.card{break-inside:avoid}.findings li{border:1px solid;border-left-width:4px}
.grid{grid-template-columns:repeat(2,minmax(0,1fr))}.fit{grid-template-columns:minmax(0,1fr)}
.sides{grid-template-columns:repeat(2,minmax(0,1fr))}
.sheet{grid-template-columns:repeat(6,minmax(0,1fr))}.heats{grid-template-columns:repeat(6,minmax(0,1fr))}
.tiles{grid-template-columns:repeat(6,1fr)}.card{border-color:#bbb}section{padding-top:14px}.scroll{overflow:visible}
thead{display:table-header-group}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def document(
    name: str, kicker: str, lead: str, top: str, body: str, *, title: str = "", links: str = "", ending: str = ""
) -> str:
    """A whole page.

    Args:
        name: its heading.
        kicker: a word above it.
        lead: a line below it, ready as HTML.
        top: what follows in the head, ready as HTML.
        body: the sections, ready as HTML.
        title: name of its window, where it is not the heading.
        links: items of the navigation, ready as HTML.
        ending: a sentence at the end.
    """
    contents = links or f'<li><a href="#main">{html.escape(name)}</a></li>'
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{html.escape(title or name)}</title>"
        f"<style>{STYLE}</style></head><body>"
        '<a class="skip" href="#main">Skip to the content</a>'
        f'<header class="wrap"><p class="kicker">{html.escape(kicker)}</p><h1>{html.escape(name)}</h1>'
        f'<p class="lead">{lead}</p>{top}</header>'
        f'<nav aria-label="Sections"><ul class="wrap">{contents}</ul></nav>'
        f'<main id="main" class="wrap">{body}</main>'
        '<footer class="wrap">Written by Shardwright. This file is whole: it fetches nothing and runs no script.'
        f"{html.escape(ending)}</footer></body></html>\n"
    )
