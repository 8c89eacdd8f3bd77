# Small tokenizers of the kinds that published models have, trained on a text.
import json, re, sys, collections, unicodedata
corpus = open('/work/wt/onnx/LICENSE').read()[:30000] + " don't we'll it's I'm they've 123 4567 naïve café Zürich 日本語 中文 Привет мир 😀 e\u0301 "*6
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
out='/work/wt/onnx/tests/golden/tokenizers/'
import os; os.makedirs(out,exist_ok=True)
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
