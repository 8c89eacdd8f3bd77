# SPDX-License-Identifier: GPL-3.0-or-later
# Small tokenizers of the kinds that published models have, trained on this project's LICENSE, from the top of the
# tree: python3 tests/golden/tokenizers/make_tokenizers.py tests/golden/tokenizers/
import json, re, sys, collections, unicodedata
corpus = open('LICENSE').read()[:30000] + " don't we'll it's I'm they've 123 4567 naïve café Zürich 日本語 中文 Привет мир 😀 e\u0301 "*6
def bytes_map():
    bs=[b for b in range(256) if 33<=b<=126 or 161<=b<=172 or b>=174]; m={b:chr(b) for b in bs}; n=256
    for b in range(256):
        if b not in m: m[b]=chr(n); n+=1
    return m
BM=bytes_map()
def train(words, merges_n):
    vocab=collections.Counter(words); merges=[]; cur={w:tuple(w) for w in vocab}
    for _ in range(merges_n):
        pairs=collections.Counter()
        for w,c in vocab.items():
            s=cur[w]
            for a,b in zip(s,s[1:]): pairs[a,b]+=c
        if not pairs: break
        (a,b),c=min(pairs.items(), key=lambda x:(-x[1],x[0]))
        if c<2: break
        merges.append((a,b))
        for w in vocab:
            s=cur[w]; out=[]; i=0
            while i<len(s):
                if i+1<len(s) and s[i]==a and s[i+1]==b: out.append(a+b); i+=2
                else: out.append(s[i]); i+=1
            cur[w]=tuple(out)
    return merges
def base(model, **k):
    d={"version":"1.0","truncation":None,"padding":None,"added_tokens":[],"normalizer":None,"pre_tokenizer":None,"post_processor":None,"decoder":None,"model":model}
    d.update(k); return d
def added(i,c,special=True,**k):
    d={"id":i,"content":c,"single_word":False,"lstrip":False,"rstrip":False,"normalized":not special,"special":special}; d.update(k); return d
def bl(prefix=False,regex=True): return {"type":"ByteLevel","add_prefix_space":prefix,"trim_offsets":True,"use_regex":regex}
out=sys.argv[1]
def save(n,d): json.dump(d,open(out+n+'.json','w'),ensure_ascii=False,indent=0,separators=(',',':'))
# GPT-2
words=[''.join(BM[b] for b in w.encode()) for w in re.findall(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+",corpus)]
merges=train(words,180)
vocab={c:i for i,c in enumerate(BM.values())}
for a,b in merges: vocab.setdefault(a+b,len(vocab))
eot=len(vocab)
gm={"type":"BPE","dropout":None,"unk_token":None,"continuing_subword_prefix":"","end_of_word_suffix":"","fuse_unk":False,"vocab":{**vocab,"<|endoftext|>":eot},"merges":[a+" "+b for a,b in merges]}
save('gpt2',base(gm,added_tokens=[added(eot,"<|endoftext|>")],pre_tokenizer=bl(),post_processor=bl(True),decoder=bl(True)))
# Llama 3: a pattern, bytes, merges ignored for whole entries, a template
pat=r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
lm=dict(gm); lm["vocab"]=dict(vocab); lm["merges"]=[[a,b] for a,b in merges]; lm["ignore_merges"]=True; lm["byte_fallback"]=False; lm["continuing_subword_prefix"]=None; lm["end_of_word_suffix"]=None
bos=len(vocab)
save('llama3',base(lm,added_tokens=[added(bos,"<|begin_of_text|>"),added(bos+1,"<|eot_id|>")],pre_tokenizer={"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":pat},"behavior":"Isolated","invert":False},bl(False,False)]},
 post_processor={"type":"Sequence","processors":[bl(True),{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|begin_of_text|>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<|begin_of_text|>":{"id":"<|begin_of_text|>","ids":[bos],"tokens":["<|begin_of_text|>"]}}}]},decoder=bl(True)))
# Llama 2: spaces as marks, bytes for what is unknown
U='\u2581'
words=[U+w for w in corpus.split()]
merges2=train(words,180)
v={"<unk>":0,"<s>":1,"</s>":2}
for b in range(256): v["<0x%02X>"%b]=len(v)
for c in sorted(set(''.join(words))):
    if ord(c)<0x300 or c==U: v.setdefault(c,len(v))
merges2=[(a,b) for a,b in merges2 if all(ord(c)<0x300 or c==U for c in a+b)]
for a,b in merges2: v.setdefault(a,len(v)); v.setdefault(b,len(v)); v.setdefault(a+b,len(v))
save('llama2',base({"type":"BPE","dropout":None,"unk_token":"<unk>","continuing_subword_prefix":None,"end_of_word_suffix":None,"fuse_unk":True,"byte_fallback":True,"vocab":v,"merges":[a+" "+b for a,b in merges2]},
 added_tokens=[added(0,"<unk>"),added(1,"<s>"),added(2,"</s>")],normalizer={"type":"Sequence","normalizers":[{"type":"Prepend","prepend":U},{"type":"Replace","pattern":{"String":" "},"content":U}]},
 post_processor={"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]}}},
 decoder={"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":U},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}))
# BERT
low=''.join(c for c in unicodedata.normalize('NFD',corpus.lower()) if unicodedata.category(c)!='Mn')
ws=collections.Counter(re.findall(r"\w+|[^\w\s]",low))
wv={"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"[MASK]":4}
chars=sorted({c for w in ws for c in w if ord(c)<0x500})
for c in chars: wv.setdefault(c,len(wv)); wv.setdefault("##"+c,len(wv))
for w,c in ws.most_common(150):
    wv.setdefault(w,len(wv))
    if len(w)>4: wv.setdefault("##"+w[-3:],len(wv)); wv.setdefault(w[:4],len(wv))
save('bert',base({"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":wv},
 added_tokens=[added(i,t) for t,i in list(wv.items())[:5]],normalizer={"type":"BertNormalizer","clean_text":True,"handle_chinese_chars":True,"strip_accents":None,"lowercase":True},pre_tokenizer={"type":"BertPreTokenizer"},
 post_processor={"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}},
 decoder={"type":"WordPiece","prefix":"##","cleanup":True}))
# T5
import math
sub=collections.Counter()
for w in corpus.split():
    w=U+w
    for i in range(len(w)):
        for j in range(i+1,min(len(w),i+8)+1): sub[w[i:j]]+=1
single={c:n for c,n in sub.items() if len(c)==1 and ord(c)<0x3000}
multi=[(p,n) for p,n in sub.most_common(4000) if len(p)>1][:200]
tot=sum(single.values())+sum(n*len(p) for p,n in multi)
uv=[["<pad>",0.0],["</s>",0.0],["<unk>",0.0]]+[[p,math.log(n*len(p)/tot)] for p,n in multi]+[[c,math.log(n/tot)-2] for c,n in sorted(single.items())]
ex=len(uv)
save('t5',base({"type":"Unigram","unk_id":2,"vocab":uv,"byte_fallback":False},
 added_tokens=[added(0,"<pad>"),added(1,"</s>"),added(2,"<unk>"),added(ex,"<extra_id_0>",lstrip=False,rstrip=True)],normalizer={"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "}]},
 pre_tokenizer={"type":"Metaspace","replacement":U,"prepend_scheme":"always","split":True},
 post_processor={"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"</s>":{"id":"</s>","ids":[1],"tokens":["</s>"]}}},
 decoder={"type":"Metaspace","replacement":U,"prepend_scheme":"always","split":True}))
# Qwen2
qpat=r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
qm=dict(gm); qm["vocab"]=dict(vocab)
def split(p,b="Isolated",inv=False): return {"type":"Split","pattern":{"Regex":p},"behavior":b,"invert":inv}
save('qwen2',base(qm,added_tokens=[added(bos,"<|endoftext|>"),added(bos+1,"<|im_start|>"),added(bos+2,"<|im_end|>"),added(bos+3,"<tool_call>",special=False,normalized=False)],normalizer={"type":"NFC"},
 pre_tokenizer={"type":"Sequence","pretokenizers":[split(qpat),bl(False,False)]},post_processor={"type":"ByteLevel","add_prefix_space":False,"trim_offsets":False,"use_regex":False},decoder={"type":"ByteLevel","add_prefix_space":False,"trim_offsets":False,"use_regex":False}))
# RoBERTa
rm=dict(gm); rv={"<s>":0,"<pad>":1,"</s>":2,"<unk>":3}
for c in vocab: rv[c]=len(rv)
rv["<mask>"]=len(rv); rm["vocab"]=rv
save('roberta',base(rm,added_tokens=[added(0,"<s>"),added(2,"</s>"),added(rv["<mask>"],"<mask>",lstrip=True)],pre_tokenizer=bl(),post_processor={"type":"RobertaProcessing","sep":["</s>",2],"cls":["<s>",0],"trim_offsets":True,"add_prefix_space":False},decoder=bl(True)))
# DeepSeek-V3
dpre=[split(r"\p{N}{1,3}"),split(r"[一-龥぀-ゟ゠-ヿ]+"),split(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),bl(False,False)]
save('deepseek',base(qm,added_tokens=[added(bos,"<｜begin▁of▁sentence｜>"),added(bos+1,"<｜end▁of▁sentence｜>")],normalizer={"type":"Sequence","normalizers":[]},pre_tokenizer={"type":"Sequence","pretokenizers":dpre},
 post_processor={"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<｜begin▁of▁sentence｜>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<｜begin▁of▁sentence｜>":{"id":"<｜begin▁of▁sentence｜>","ids":[bos],"tokens":["<｜begin▁of▁sentence｜>"]}}},decoder=bl(True)))
# Gemma
gv={"<pad>":0,"<eos>":1,"<bos>":2,"<unk>":3}
for t in list(v)[3:]: gv.setdefault(t,len(gv))
gv.setdefault("\n",len(gv))
save('gemma',base({"type":"BPE","dropout":None,"unk_token":"<unk>","continuing_subword_prefix":None,"end_of_word_suffix":None,"fuse_unk":True,"byte_fallback":True,"ignore_merges":False,"vocab":gv,"merges":[[a,b] for a,b in merges2]},
 added_tokens=[added(i,t) for t,i in list(gv.items())[:4]]+[added(gv["\n"],"\n",special=False,normalized=False)],normalizer={"type":"Replace","pattern":{"String":" "},"content":U},
 pre_tokenizer={"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":False},
 post_processor={"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<bos>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<bos>":{"id":"<bos>","ids":[2],"tokens":["<bos>"]}}},
 decoder={"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":U},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"}]}))
# CLIP: words end with a mark
cm_words=[w for w in re.findall(r"[a-z]+|[0-9]|[^\sa-z0-9]+",corpus.lower())]
cw=[tuple([BM[b] for b in w.encode()]) for w in cm_words]
cw=[t[:-1]+(t[-1]+"</w>",) for t in cw]
cmerges=train(cw,150)
cv={}
for c in BM.values(): cv[c]=len(cv)
for c in BM.values(): cv[c+"</w>"]=len(cv)
for a,b in cmerges: cv.setdefault(a+b,len(cv))
cv["<|startoftext|>"]=len(cv); cv["<|endoftext|>"]=len(cv)
save('clip',base({"type":"BPE","dropout":None,"unk_token":"<|endoftext|>","continuing_subword_prefix":"","end_of_word_suffix":"</w>","fuse_unk":False,"vocab":cv,"merges":[a+" "+b for a,b in cmerges]},
 added_tokens=[added(cv["<|startoftext|>"],"<|startoftext|>",normalized=True),added(cv["<|endoftext|>"],"<|endoftext|>",normalized=False)],
 normalizer={"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "},{"type":"Lowercase"}]},
 pre_tokenizer={"type":"Sequence","pretokenizers":[split(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+","Removed",True),{"type":"ByteLevel","add_prefix_space":False,"trim_offsets":True}]},
 post_processor={"type":"RobertaProcessing","sep":["<|endoftext|>",cv["<|endoftext|>"]],"cls":["<|startoftext|>",cv["<|startoftext|>"]],"trim_offsets":False,"add_prefix_space":False},decoder=bl(True)))
# Distilled WordPiece, cased, Whitespace and Punctuation and Lowercase steps
save('cased',base({"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":20,"vocab":wv},added_tokens=[added(i,t) for t,i in list(wv.items())[:5]],
 normalizer={"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"StripAccents"},{"type":"Strip","strip_left":True,"strip_right":True},{"type":"Lowercase"}]},pre_tokenizer={"type":"Sequence","pretokenizers":[{"type":"Whitespace"},{"type":"Punctuation","behavior":"Contiguous"},{"type":"Digits","individual_digits":False}]},
 post_processor={"type":"BertProcessing","sep":["[SEP]",3],"cls":["[CLS]",2]},decoder={"type":"WordPiece","prefix":"##","cleanup":False}))
# XLM-R / T5 as they are published: a compiled map of characters
import base64, struct
def darts(entries):
    """Units of a double array (Yata's, as sentencepiece stores it) for sorted (bytes, value)."""
    units=[0]*256; used=[False]*256; used[0]=True
    def grow(n):
        while len(units)<=n: units.extend([0]*256); used.extend([False]*256)
    def build(pos,items,depth):
        labels=sorted({k[depth] if depth<len(k) else 0 for k,_ in items}); base_=0
        while True:
            base_+=1
            grow(base_|255)
            off=base_^pos
            if (off<(1<<21) or (off&255)==0) and all(not used[base_^l] for l in labels): break
        units[pos]|=((base_^pos)<<10) if (base_^pos)<(1<<21) else (((base_^pos)<<2)|(1<<9))
        for l in labels: used[base_^l]=True
        for l in labels:
            sub=[(k,x) for k,x in items if (k[depth] if depth<len(k) else 0)==l]
            p=base_^l
            if l==0: units[pos]|=1<<8; units[p]=sub[0][1]|(1<<31)
            else: units[p]=l; build(p,sub,depth+1)
    build(0,entries,0)
    return units
def charsmap(pairs):
    blob=b''; entries=[]
    for k in sorted(pairs,key=lambda s:s.encode()): entries.append((k.encode(),len(blob))); blob+=pairs[k].encode()+b'\0'
    u=darts(entries)
    return base64.b64encode(struct.pack('<I',4*len(u))+struct.pack('<%dI'%len(u),*u)+blob).decode()
cm={}
for c in list(range(0x80,0x250))+list(range(0x2000,0x2070))+list(range(0x2150,0x2190))+list(range(0x2460,0x2475))+list(range(0xfb00,0xfb07))+list(range(0xff01,0xff5f))+list(range(0x1ea0,0x1ef0)):
    s=chr(c); n=unicodedata.normalize('NFKC',s)
    if n!=s: cm[s]=n
    for t in {unicodedata.normalize('NFD',s)}:
        if len(t)>1 and unicodedata.normalize('NFKC',t)!=t: cm[t]=unicodedata.normalize('NFKC',t)
for c in '\t\n\r\u00a0\u2028\u2029\u3000\ufeff\u0085': cm[c]=' '
for c in '\u200b\u200e\u200f\u0001\u007f\u00ad': cm[c]=''
map64=charsmap(cm)
xv=[["<s>",0.0],["<pad>",0.0],["</s>",0.0],["<unk>",0.0]]+uv[3:]; mk=len(xv); xv.append(["<mask>",0.0])
save('xlmr',base({"type":"Unigram","unk_id":3,"vocab":xv,"byte_fallback":False},added_tokens=[added(0,"<s>"),added(1,"<pad>"),added(2,"</s>"),added(3,"<unk>"),added(mk,"<mask>",lstrip=True)],
 normalizer={"type":"Sequence","normalizers":[{"type":"Precompiled","precompiled_charsmap":map64},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "}]},
 pre_tokenizer={"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{"type":"Metaspace","replacement":U,"prepend_scheme":"always","split":True}]},
 post_processor={"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<s>":{"id":"<s>","ids":[0],"tokens":["<s>"]},"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]}}},
 decoder={"type":"Metaspace","replacement":U,"prepend_scheme":"always","split":True}))
# Unigram with bytes for what is unknown, the first word alone marked
save('marian',base({"type":"Unigram","unk_id":2,"vocab":uv+[["<0x%02X>"%b,-20.0] for b in range(256)],"byte_fallback":True},added_tokens=[added(0,"<pad>"),added(1,"</s>"),added(2,"<unk>")],
 normalizer={"type":"Precompiled","precompiled_charsmap":map64},pre_tokenizer={"type":"Metaspace","replacement":U,"prepend_scheme":"first","split":False},
 decoder={"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Metaspace","replacement":U,"prepend_scheme":"first","split":False}]}))

# BLOOM; Llama 4 and GPT-4o
bm=dict(gm); bm["vocab"]=dict(vocab)
save('bloom',base(bm,added_tokens=[added(bos,"<s>"),added(bos+1,"</s>")],pre_tokenizer={"type":"Sequence","pretokenizers":[split(r" ?[^(\s|[.,!?…。，、।۔،])]+"),bl(False,False)]},decoder=bl(True)))
opat="|".join([r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",r"\p{N}{1,3}",r" ?[^\s\p{L}\p{N}]+[\r\n/]*",r"\s*[\r\n]+",r"\s+(?!\S)",r"\s+"])
save('llama4',base(bm,added_tokens=[added(bos,"<|begin_of_text|>"),added(bos+1,"<|eot|>")],pre_tokenizer={"type":"Sequence","pretokenizers":[split(opat),bl(False,False)]},decoder=bl(True)))
