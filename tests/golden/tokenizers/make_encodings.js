// SPDX-License-Identifier: GPL-3.0-or-later
// What Hugging Face's own library (Rust; npm: @anush008/tokenizers 0.6.0) makes of texts by the tokenizers of a
// folder, and of tokens, half characters among them: writes encodings.json and decodings.json there.
//   node make_encodings.js FOLDER
const { Tokenizer } = require('@anush008/tokenizers');
const fs = require('fs');
const folder = process.argv[2];
const texts = ['', ' ', 'a', 'Hello world', ' Hello  world ', "don't we'll IT'S they've", 'free software', 'The GNU General Public License', '12345 and 67', 'x=1;y=2', 'naïve café Zürich', 'e\u0301te\u0301', '日本語 中文', 'Привет, мир!', '😀 smile 😀😀', 'tabs\tand\nnew\r\nlines\n\n  end', 'a...b!!! ???', 'ﬁ ½ ①  Å', '<|endoftext|>x<|endoftext|>', 'a <s> b</s>c', 'hi<|begin_of_text|> there<|eot_id|>', '[CLS] word [SEP]', 'one <extra_id_0>  two', 'software software software softwaresoftware', 'UPPER lower MiXeD', '\u200bzero\u00a0nbsp', 'snake_case under_score', '$100 & 50%', 'zzzzqqqqxxxx', 'distribute and/or modify it under the terms', '   leading', 'trailing   ', 'ÀÉÎ õü ß', 'ひらがなカタカナ', '한국어 문장', 'עברית', 'العربية', 'co-operate (see below): "quoted" \'single\'', 'http://www.gnu.org/licenses/', '\u2581mark\u2581', 'ab',
  // spaces of every kind, and what only looks like one
  'a\u0085b\u2028c\u2003d\u3000e', '//\u180e\u2460 \u180e x', '\ufeffa\u00ad\u200db\u001f c\u007f', '   \n  \r\n\t x \n', 'a\u000bb\u000cc',
  // cases, marks, numbers
  'İ Ⅷ Ⓐ ẞ Σς ΣΑΣ ǅ', '#️⃣ 1️⃣ e\u20dd', '½²①Ⅷ٣٤ 1234567', "I'LL 'ſ ’s 'd", 'Ａｂｃ１２ ｶﾞ ﷺ', 'हिन्दी தமிழ் ภาษาไทย \u0e33', '\u1100\u1161\u11a8 각 \u212b',
  // emoji with joiners, tones and flags
  '👨‍👩‍👧‍👦 👍🏽🇩🇪🇫🇷 ❤️ 🅐🄱', '𝒳𝓎 𠮷 \ufffd',
  // special tokens inside of text
  'a <mask> b\u0085<mask>c', '<bos>x<eos><pad><unk>', '<|im_start|>user\nhi<|im_end|>', '<｜begin▁of▁sentence｜>x', '<0x41><0x0A>##ing</w>', '(a|b) [c], d.', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'];

// A linear congruence (Lehmer's), so that the draws are the same everywhere.
let state = 5;
const draw = (n) => { state = (state * 48271) % 2147483647; return state % n; };

(async () => {
  const encodings = [], decodings = [];
  for (const file of fs.readdirSync(folder).sort()) {
    if (!file.endsWith('.json') || file.endsWith('codings.json')) continue;
    const tokenizer = file.slice(0, -5);
    const t = Tokenizer.fromFile(`${folder}/${file}`);
    for (const text of texts) {
      const ids = Array.from((await t.encode(text, null, { addSpecialTokens: true })).getIds());
      encodings.push(JSON.stringify({ tokenizer, text, ids, decoded: await t.decode(ids, true) }));
    }
    for (let k = 0; k < 24; k++) {
      const ids = Array.from({ length: 1 + draw(9) }, () => draw(draw(2) ? t.getVocabSize(true) : 300));
      const decoded = await t.decode(ids, true);
      if (!decoded.includes('\0')) decodings.push(JSON.stringify({ tokenizer, ids, decoded }));
    }
  }
  fs.writeFileSync(`${folder}/encodings.json`, '[\n' + encodings.join(',\n') + '\n]\n');
  fs.writeFileSync(`${folder}/decodings.json`, '[\n' + decodings.join(',\n') + '\n]\n');
})();
