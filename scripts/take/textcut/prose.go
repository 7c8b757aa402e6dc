package textcut

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A name in code, or a link.
const reference = "(?:`[^`]+`|\\[[^\\]]*\\]\\([^)]*\\))"

var (
	abbreviation = regexp.MustCompile(`(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|No|approx)\.$`)
	// A sentence that begins so says more about the one before it.
	refersBack = regexp.MustCompile(`^(It|Its|They|Their|Them|This|That|These|Those|So|Then|But|` +
		`Otherwise|Instead|Both|Neither|Such|The others?|The second|The latter)\b`)
	// Three or more names or links, so that cutting one leaves a plural.
	enumeration = regexp.MustCompile(reference + `(?:(?:,? and |,? or |, )` + reference + `)+`)
	separator   = regexp.MustCompile(`^(?:,? and |,? or |, )`)
	name        = regexp.MustCompile(`^` + reference)
)

// Sentences splits a text at the ends of its sentences, outside of code, bold type and
// parentheses.
func Sentences(text string) (all []string) {
	text = strings.Join(strings.Fields(text), " ")
	start, depth, code, bold := 0, 0, false, false
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; {
		case ch == '`':
			code = !code
		case code:
		case ch == '*' && i+1 < len(text) && text[i+1] == '*':
			bold = !bold
			i++
		case ch == '(' || ch == '[':
			depth++
		case ch == ')' || ch == ']':
			depth--
		case strings.IndexByte(".!?", ch) >= 0:
			j := i + 1
			for ; j < len(text) && strings.IndexByte("*\"')_", text[j]) >= 0; j++ {
				if ch := text[j]; ch == ')' {
					depth--
				} else if ch == '*' && j+1 < len(text) && text[j+1] == '*' {
					bold = !bold
					j++
				}
			}
			i = j - 1
			ends := !bold && depth <= 0 && j < len(text) && text[j] == ' ' && !unicode.IsLower(rune(text[j+1]))
			if ends && !abbreviation.MatchString(text[start:j]) {
				all = append(all, text[start:j])
				start = j + 1
			}
		}
	}
	return append(all, text[start:])
}

// Prose cuts the sentences of a paragraph that mention a missing part.
func Prose(text string, mentions func(text string) bool) string {
	return (&cutter{mentions: mentions}).prose(text)
}

// prose cuts the sentences that mention, with those that refer back to them, and the
// names in enumerations. It returns what is left.
func (c *cutter) prose(text string) string {
	var kept []string
	cut := false
	for _, sentence := range Sentences(text) {
		if rest := c.names(sentence); c.mentions(rest) || cut && refersBack.MatchString(sentence) {
			cut = true
		} else {
			kept, cut = append(kept, rest), false
		}
	}
	return strings.Join(kept, " ")
}

// names cuts the names that mention out of the enumerations of a sentence, if two are
// left.
func (c *cutter) names(sentence string) string {
	return enumeration.ReplaceAllStringFunc(sentence, func(list string) string {
		if rest := c.listed(list); len(rest) >= 2 {
			return strings.Join(rest, "")
		}
		return list
	})
}

// listed returns the names of an enumeration that are left, each with the separator
// before it.
func (c *cutter) listed(list string) (kept []string) {
	last := ""
	for list != "" {
		before := separator.FindString(list)
		one := name.FindString(list[len(before):])
		list = list[len(before)+len(one):]
		if !c.mentions(one) {
			if len(kept) == 0 {
				before = ""
			}
			kept = append(kept, before+one)
		}
		last = before
	}
	if n := len(kept); n > 1 && last != "" { // the last separator stays the last one
		kept[n-1] = last + kept[n-1][len(separator.FindString(kept[n-1])):]
	}
	return kept
}

// Wrap breaks a text at width columns. A line never begins like a list item or a heading.
func Wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		block := slices.Contains([]string{"-", "+", "*", "#", ">", "|"}, word) || listItem.MatchString(word+" x")
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width && !block {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// rewrap cuts the prose of lines that begin with prefix and wraps it again, if anything
// was cut.
func (c *cutter) rewrap(lines []string, prefix string, most int) []string {
	if !c.mentions(joinLines(lines)) {
		return lines
	}
	text, width := "", 0
	for _, line := range lines {
		width = max(width, len([]rune(line)))
		text += strings.TrimPrefix(line, prefix) + " "
	}
	if len(lines) == 1 {
		width = most
	}
	rest := c.prose(text)
	if rest == "" {
		return nil
	}
	out := Wrap(rest, min(width, most)-len(prefix))
	for i := range out {
		out[i] = prefix + out[i]
	}
	return out
}
