// SPDX-License-Identifier: GPL-3.0-or-later
/* Style and script of the page. Text colours reach 4.5:1 on their grounds in both schemes. The
 * script filters tables, opens what a filter finds and highlights the arrows of the box under the
 * pointer; without it everything is there. It holds neither `<` nor `&`, so that the page is well
 * formed as XML. */
#include "reports/page/page_sections.h"

#include "reports/markup/palette.h"

static const char text_style[] =
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:0 20px 60px;max-width:1180px;overflow-wrap:anywhere;"
    "background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Helvetica,Arial,"
    "sans-serif}\n"
    "h1{font-size:26px;line-height:1.25;margin:28px 0 2px;overflow-wrap:anywhere}\n"
    "h2{font-size:19px;margin:40px 0 10px;padding-top:12px;border-top:1px solid var(--line)}\n"
    "h3{font-size:15px;margin:22px 0 6px}\n"
    "p{margin:6px 0;max-width:75ch;overflow-wrap:anywhere}\n"
    "a{color:var(--accent)}\n"
    "nav{display:flex;flex-wrap:wrap;gap:2px 14px;margin:8px 0 18px}\n"
    "code,.mono{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\","
    "monospace}\n"
    ".soft{color:var(--soft)}\n"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:14px 18px}\n"
    ".numbers{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0}\n"
    ".numbers div{flex:1 1 150px;background:var(--card);border:1px solid var(--line);"
    "border-radius:8px;padding:10px 14px}\n"
    ".numbers b{display:block;font-size:22px;line-height:1.3}\n"
    ".numbers span{color:var(--soft);font-size:13px}\n"
    "dl{display:grid;grid-template-columns:minmax(96px,max-content) minmax(0,1fr);gap:5px 18px;"
    "margin:0}\n"
    "dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n"
    ".wide{overflow-x:auto;max-width:100%;margin:8px 0}.high{max-height:460px;overflow-y:auto}\n"
    "table{border-collapse:collapse;width:100%;min-width:560px;font-size:14px;"
    "overflow-wrap:normal}\n"
    "th,td{text-align:left;padding:5px 14px 5px 0;border-bottom:1px solid var(--line);"
    "vertical-align:top}\n"
    "th{color:var(--soft);font-weight:600;white-space:nowrap}\n"
    ".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    "td.mono{overflow-wrap:anywhere;min-width:130px}\n"
    "tr:target{outline:2px solid var(--accent)}\n"
    "input[type=search]{font:inherit;color:inherit;background:var(--bg);width:min(100%,340px);"
    "border:1px solid var(--soft);border-radius:6px;padding:5px 10px}\n";

static const char picture_style[] =
    ".chart text,.slices text{font-size:12px;fill:currentColor}\n"
    ".chart text.soft{fill:var(--soft)}.chart text.small{font-size:11px}\n"
    ".chart{display:block;width:100%;min-width:620px;height:auto}\n"
    ".grid{stroke:var(--line);fill:none}.limit{stroke:var(--warn);stroke-width:2;"
    "stroke-dasharray:7 4;fill:none}\n"
    ".chart text.limit-text{fill:var(--warn)}.mark{stroke:currentColor;stroke-dasharray:2 3;fill:none}\n"
    ".dot{fill:currentColor}.band{fill:var(--card);stroke:var(--line)}\n"
    ".measured{fill:none;stroke:var(--bar);stroke-width:2}.bar{fill:var(--bar)}\n"
    ".slices{display:block}.slices text{fill:#16191d}.slices .strong{font-weight:700}\n"
    ".frontier{fill:none;stroke:var(--bar);stroke-width:2}"
    ".of-frontier circle{fill:var(--bg);stroke:var(--bar);stroke-width:2}"
    ".of-known rect{fill:var(--card);stroke:var(--soft);stroke-width:1.5}"
    ".of-chosen circle{fill:var(--fg)}.chart .of-chosen text{fill:var(--bg);font-weight:700}"
    ".chosen td{font-weight:700}\n"
    ".chart .strong{font-weight:700;font-size:14px}"
    ".answers td:first-child{color:var(--soft);white-space:nowrap}\n"
    ".cell{stroke:#ffffff;stroke-width:2}\n"
    ".thumb{display:block;width:44px;height:30px}\n"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;padding:0;margin:8px 0}\n"
    ".swatch{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:6px}\n"
    ".drawing{background:#ffffff;color:#16191d;border:1px solid var(--line);border-radius:8px;"
    "padding:8px;overflow:auto;margin:8px 0}\n"
    ".picture{display:block;margin:0 auto;height:auto;max-width:100%}\n"
    ".picture text{font-family:\"DejaVu Sans\",Verdana,Helvetica,Arial,sans-serif}\n"
    ".picture .edge{transition:opacity .12s}.picture .dim{opacity:.12}\n"
    ".step td{padding:7px 18px 7px 0}.step b{font-size:15px;font-variant-numeric:tabular-nums}\n"
    ".step td .soft{font-size:13px}.times{color:var(--soft);font-weight:600}\n"
    ".bar2{display:block;margin:3px 0 2px;max-width:100%}\n"
    ".compute{fill:var(--bar);background:var(--bar)}"
    ".network{fill:var(--net);background:var(--net)}.traffic{color:var(--warn)}\n"
    ".rest{fill:var(--line)}.link{stroke:var(--net);stroke-linecap:butt;fill:none}"
    ".link.idle{stroke:var(--soft)}.torus text{font-size:11px}\n"
    "details.part{border:1px solid var(--line);border-radius:8px;padding:10px 14px}\n"
    "details.part>summary{font-size:16px}\n"
    "details{margin:10px 0}summary{cursor:pointer;color:var(--accent)}\n"
    "@media print{.high{max-height:none}body{max-width:none;font-size:13px;print-color-adjust:exact}"
    ".drawing,.wide{overflow:visible}"
    ".chart{min-width:0}.picture{min-width:0!important}input,nav{display:none}"
    "table{min-width:0;font-size:11px;overflow-wrap:anywhere}th,.n{white-space:normal}"
    "th,td{padding-right:8px}h2,h3{break-after:avoid}svg,tr{break-inside:avoid}}\n"
    "@media (max-width:520px){body{padding:0 12px 40px}dl{grid-template-columns:1fr;gap:0}"
    "dd{margin-bottom:8px}}\n";

static const char script[] =
    "document.querySelectorAll('input[data-table]').forEach(function(box){\n"
    "  box.hidden=false;\n"
    "  box.addEventListener('input',function(){\n"
    "    var wanted=box.value.toLowerCase();\n"
    "    document.querySelectorAll('.'+box.dataset.table+' tbody tr').forEach(function(row){\n"
    "      row.hidden=!row.textContent.toLowerCase().includes(wanted);\n"
    "    });\n"
    "    document.querySelectorAll('details.'+box.dataset.table).forEach(function(more){\n"
    "      more.open=wanted.length!==0;\n"
    "    });\n"
    "  });\n"
    "});\n"
    "document.querySelectorAll('.picture').forEach(function(picture){\n"
    "  var edges=picture.querySelectorAll('.edge');\n"
    "  function show(name){\n"
    "    edges.forEach(function(edge){\n"
    "      edge.classList.toggle('dim',name!==null?!edge.classList.contains(name):false);\n"
    "    });\n"
    "  }\n"
    "  picture.querySelectorAll('.node').forEach(function(node){\n"
    "    var name='at-'+node.id.split('-').pop();\n"
    "    node.addEventListener('mouseenter',function(){show(name);});\n"
    "    node.addEventListener('mouseleave',function(){show(null);});\n"
    "  });\n"
    "});\n"
    "function follow(){\n"
    "  var wanted=document.getElementById(location.hash.slice(1));\n"
    "  for(var e=wanted;e!==null;e=e.parentElement){if(e.tagName==='DETAILS'){e.open=true;}}\n"
    "  if(wanted!==null){wanted.scrollIntoView();}\n"
    "}\n"
    "window.addEventListener('hashchange',follow);\n"
    "if(location.hash.length>1){follow();}\n";

static void add_theme(GString *page, bool dark) {
    for (const MtfThemeColor *color = mtf_palette_theme(); color->name != NULL; color++)
        g_string_append_printf(page, ";--%s:%s", color->name, dark ? color->dark : color->light);
}

void mtf_page_head(GString *page) {
    g_string_append(page, "<style>\n:root{color-scheme:light dark");
    add_theme(page, false);
    g_string_append(page,
                    "}\n@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark");
    add_theme(page, true);
    g_string_append(page, "}}\n");
    g_string_append(page, text_style);
    g_string_append(page, picture_style);
    g_string_append(page, "</style>\n");
}

void mtf_page_script(GString *page) {
    g_string_append(page, "<script>\n");
    g_string_append(page, script);
    g_string_append(page, "</script>\n");
}
