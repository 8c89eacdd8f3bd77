// SPDX-License-Identifier: GPL-3.0-or-later
// Filters tables, opens what a filter finds, scrolls wide pictures to where they begin and highlights the arrows of the box under the pointer; without
// it everything is there. It holds neither an angle bracket that opens nor an ampersand, so that pages are
// well formed as XML.
document.querySelectorAll('input[data-table]').forEach(function(box){
  box.hidden=false;
  box.addEventListener('input',function(){
    var wanted=box.value.toLowerCase();
    document.querySelectorAll('.'+box.dataset.table+' tbody tr').forEach(function(row){
      row.hidden=!row.textContent.toLowerCase().includes(wanted);
    });
    document.querySelectorAll('details.'+box.dataset.table).forEach(function(more){
      more.open=wanted.length!==0;
    });
  });
});
document.querySelectorAll('.picture').forEach(function(picture){
  var edges=picture.querySelectorAll('.edge');
  function show(name){
    edges.forEach(function(edge){
      edge.classList.toggle('dim',name!==null?!edge.classList.contains(name):false);
    });
  }
  picture.querySelectorAll('.node').forEach(function(node){
    var name='at-'+node.id.split('-').pop();
    node.addEventListener('mouseenter',function(){show(name);});
    node.addEventListener('mouseleave',function(){show(null);});
  });
});
function begin(picture){
  if(picture.closest('details:not([open])')!==null){return;}
  var box=picture.parentElement.getBoundingClientRect(),first=null;
  picture.querySelectorAll('.node').forEach(function(node){
    var here=node.getBoundingClientRect();
    if(first===null||first.top>here.top){first=here;}
  });
  if(first!==null){picture.parentElement.scrollLeft+=first.left+first.width/2-box.left-box.width/2;}
}
document.querySelectorAll('.picture').forEach(begin);
document.querySelectorAll('details').forEach(function(more){
  more.addEventListener('toggle',function(){more.querySelectorAll('.picture').forEach(begin);},{once:true});
});
function follow(){
  var wanted=document.getElementById(location.hash.slice(1));
  for(var e=wanted;e!==null;e=e.parentElement){if(e.tagName==='DETAILS'){e.open=true;}}
  if(wanted!==null){wanted.scrollIntoView();}
}
window.addEventListener('hashchange',follow);
if(location.hash.length>1){follow();}
