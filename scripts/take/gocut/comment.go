package gocut

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"

	"orderonce/scripts/take/textcut"
)

// A clause that a sentence can do without.
var clause = regexp.MustCompile(`, (and|or|which|but|so|if|unless|for) |[:;] `)

var directive = regexp.MustCompile(`^(go:|nolint)`)

// widest is how many columns a comment may have.
const widest = 90

// comments cuts the sentences that mention a missing part.
func (e *editor) comments() {
	for _, g := range e.ast.Comments {
		if !e.Mentions(textOf(g)) || e.isCut(e.offset(g.Pos())) {
			continue
		}
		from, to := e.offset(g.Pos()), e.offset(g.End())
		start := e.lineStart(from)
		own := start < from || from == 0 || e.src[from-1] == '\n'
		if strings.HasPrefix(g.List[0].Text, "/*") {
			e.refuse(g, "a comment in /* */")
			continue
		}
		left := e.cutComment(g, from-start)
		name := e.documented(g)
		switch {
		case left != "":
			e.edits = append(e.edits, edit{from, to, left})
		case own:
			end, _ := e.lineEnd(to)
			e.edits = append(e.edits, edit{start, end, ""})
		default:
			for from > 0 && (e.src[from-1] == ' ' || e.src[from-1] == '\t') {
				from--
			}
			e.edits = append(e.edits, edit{from, to, ""})
		}
		if name != "" && !strings.HasPrefix(left, "// "+name) {
			e.refuse(g, "the sentence that says what "+name+" is")
		}
	}
}

func textOf(g *ast.CommentGroup) string {
	var lines []string
	for _, c := range g.List {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(c.Text, "//")))
	}
	return strings.Join(lines, " ")
}

func (e *editor) isCut(offset int) bool {
	for _, d := range e.edits {
		if d.from <= offset && offset < d.to {
			return true
		}
	}
	return false
}

// documented returns the first word that a comment must have, or "".
func (e *editor) documented(g *ast.CommentGroup) string {
	var id *ast.Ident
	switch p := e.parent[g].(type) {
	case *ast.FuncDecl:
		id = p.Name
	case *ast.TypeSpec:
		id = p.Name
	case *ast.File:
		return strings.Fields(textOf(g))[0]
	case *ast.GenDecl:
		if s, is := p.Specs[0].(*ast.TypeSpec); is {
			id = s.Name
		} else if s, is := p.Specs[0].(*ast.ValueSpec); is && !p.Lparen.IsValid() {
			id = s.Names[0]
		}
	}
	if id == nil || !id.IsExported() || e.test {
		return ""
	}
	return id.Name
}

// cutComment returns the comment without what mentions a missing part: sentences of its
// paragraphs, items of its lists and lines of its examples.
func (e *editor) cutComment(g *ast.CommentGroup, indent int) string {
	var out, words []string
	flush := func() {
		if len(words) > 0 {
			text := strings.Join(words, " ")
			if e.Mentions(text) {
				text = e.cutSentences(text)
			}
			if text == strings.Join(words, " ") {
				out = append(out, words...)
			} else if text != "" {
				out = append(out, textcut.Wrap(text, widest-indent-len("// "))...)
			}
			words = nil
		}
	}
	for _, c := range g.List {
		text := strings.TrimPrefix(c.Text, "//")
		switch {
		case text != "" && (text[0] != ' ' || strings.HasPrefix(text, "  ") || strings.HasPrefix(text, " \t")):
			flush()
			if !e.Mentions(text) || directive.MatchString(text) {
				out = append(out, text)
			}
		case text == "":
			flush()
			if len(out) > 0 && out[len(out)-1] != "" {
				out = append(out, "")
			}
		default:
			words = append(words, strings.TrimSpace(text))
		}
	}
	flush()
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	for i, line := range out {
		if line != "" && line[0] != ' ' && line[0] != '\t' && !directive.MatchString(line) {
			line = " " + line
		}
		out[i] = "//" + line
	}
	return strings.Join(out, "\n"+strings.Repeat("\t", indent))
}

// cutSentences returns the paragraph without the sentences that mention a missing part.
// Of the first one those clauses at its end go, if that is enough.
func (e *editor) cutSentences(text string) string {
	all := textcut.Sentences(text)
	return textcut.Prose(strings.Join(append(e.shorten(all[0]), all[1:]...), " "), e.Mentions)
}

// shorten returns a sentence without the clauses from the first that mentions a missing
// part on.
func (e *editor) shorten(s string) []string {
	left := s
	for _, at := range slices.Backward(clause.FindAllStringIndex(s, -1)) {
		if e.Mentions(left) {
			left = s[:at[0]] + "."
		}
	}
	if !e.Mentions(s) || strings.Count(left, " ") < 2 {
		left = s
	}
	return []string{left}
}
