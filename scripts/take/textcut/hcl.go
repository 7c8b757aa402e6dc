package textcut

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Attributes whose value is prose, and those that say what their object is about.
var (
	isProse = regexp.MustCompile(`^"?(description|error_message|summary|desc)"?$`)
	isTitle = regexp.MustCompile(`^"?(title|question|name|label|operationId|Sid|\$ref)"?$`)
	// Functions that do as well with one argument less.
	variadic = regexp.MustCompile(`^(concat|merge|coalesce|coalescelist|setunion|try|max|min|join|format)$`)
	blanks   = regexp.MustCompile(`\n\s*\n(\s*\n)+`)
	opened   = regexp.MustCompile(`([{\[(]\n)\s*\n`)
	closed   = regexp.MustCompile(`\n\s*\n(\s*[}\])])`)
)

type edit struct {
	start, end int
	text       string
}

// hclCutter cuts a file of Terraform, or JSON, which is an expression of the same syntax.
type hclCutter struct {
	*cutter
	gone   map[string]bool // addresses of what was removed elsewhere: local.x, var.y, aws_sqs_queue.z
	tokens hclsyntax.Tokens
	edits  []edit
	assert bool // in a condition that must hold: an operand that goes is dropped, whatever its value would be
}

func cutHCL(c *cutter, gone map[string]bool) ([]byte, error) {
	file, problems := hclsyntax.ParseConfig([]byte(c.src), c.path, hcl.InitialPos)
	if problems.HasErrors() {
		return nil, fmt.Errorf("%s: %w", c.path, problems)
	}
	h := newHCL(c, gone)
	prefix := ""
	if strings.HasSuffix(c.path, ".tfvars") {
		prefix = "var."
	}
	kept := h.body(file.Body.(*hclsyntax.Body), prefix)
	h.comments()
	if !kept {
		return nil, nil
	}
	return c.result(string(hclwrite.Format([]byte(tidy(h.apply())))))
}

func newHCL(c *cutter, gone map[string]bool) *hclCutter {
	tokens, _ := hclsyntax.LexConfig([]byte(c.src), c.path, hcl.InitialPos)
	return &hclCutter{cutter: c, gone: gone, tokens: tokens}
}

func tidy(text string) string {
	text = blanks.ReplaceAllString(text, "\n\n")
	return closed.ReplaceAllString(opened.ReplaceAllString(text, "$1"), "\n$1")
}

func (h *hclCutter) apply() string {
	slices.SortStableFunc(h.edits, func(a, b edit) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	var out strings.Builder
	at := 0
	for _, e := range h.edits {
		if e.start < at { // inside of what an earlier edit removed
			if e.end > at {
				at = e.end
			}
			continue
		}
		out.WriteString(h.src[at:e.start] + e.text)
		at = e.end
	}
	return out.String() + h.src[at:]
}

func (h *hclCutter) text(r hcl.Range) string { return h.src[r.Start.Byte:r.End.Byte] }

func (h *hclCutter) replace(r hcl.Range, text string) {
	h.edits = append(h.edits, edit{r.Start.Byte, r.End.Byte, text})
}

func (h *hclCutter) delete(start, end int) { h.edits = append(h.edits, edit{start, end, ""}) }

// json cuts members and elements. JSON is an expression of HCL.
func (c *cutter) json() string {
	e, problems := hclsyntax.ParseExpression([]byte(c.src), c.path, hcl.InitialPos)
	if problems.HasErrors() {
		c.refuse(c.src, "JSON that cannot be read")
		return ""
	}
	h := newHCL(c, nil)
	if h.expr(e) {
		return ""
	}
	return h.apply()
}

// body cuts the attributes and blocks of a body, and reports whether any is left. The
// address of an attribute is its name behind prefix.
func (h *hclCutter) body(b *hclsyntax.Body, prefix string) bool {
	left := 0
	for _, a := range b.Attributes {
		if h.attribute(a, prefix) {
			h.item(a.SrcRange)
		} else {
			left++
		}
	}
	for _, block := range b.Blocks {
		if h.block(block) {
			h.item(block.Range())
		} else {
			left++
		}
	}
	return left > 0
}

// attribute reports whether the attribute goes.
func (h *hclCutter) attribute(a *hclsyntax.Attribute, prefix string) bool {
	if h.gone[prefix+a.Name] {
		return true
	}
	if !h.hit(a.Expr) && !h.mentions(h.text(a.SrcRange)) {
		return false
	}
	if h.mentions(a.Name) {
		return true
	}
	if isProse.MatchString(a.Name) {
		out := h.proseOf(a.Expr)
		if out && a.Name != "error_message" { // which says what its block is about
			h.refuse(h.text(a.SrcRange), "the only sentence of a text")
		}
		return out
	}
	h.assert = a.Name == "condition"
	defer func() { h.assert = false }()
	return h.expr(a.Expr)
}

// block reports whether the block goes.
func (h *hclCutter) block(b *hclsyntax.Block) bool {
	names := append([]string{b.Type}, b.Labels...)
	if h.mentions(strings.Join(names, " ")) || h.gone[addressOf(b)] {
		return true
	}
	before := len(h.edits)
	prefix := map[string]string{"locals": "local.", "variables": "var."}[b.Type]
	if b.Type == "module" {
		prefix = addressOf(b) + ".arg."
	}
	left := h.body(b.Body, prefix)
	if len(h.edits) == before {
		return false
	}
	for _, need := range []string{
		"count", "for_each", "condition", "error_message", "value", "from", "to", "expect_failures", "target",
	} {
		if a := b.Body.Attributes[need]; a != nil && h.deleted(a.SrcRange) {
			return true
		}
	}
	if b.Type == "run" { // a test that asserts nothing any more
		for _, inner := range b.Body.Blocks {
			if inner.Type == "assert" && !h.deleted(inner.Range()) {
				return false
			}
		}
		return b.Body.Attributes["expect_failures"] == nil
	}
	return !left
}

func (h *hclCutter) deleted(r hcl.Range) bool {
	return slices.ContainsFunc(h.edits, func(e edit) bool {
		return e.start <= r.Start.Byte && e.end >= r.End.Byte
	})
}

// item deletes an attribute or a block with the comment above it and the rest of its
// line.
func (h *hclCutter) item(r hcl.Range) {
	start, end := r.Start.Byte, r.End.Byte
	line := strings.LastIndexByte(h.src[:start], '\n') + 1
	rest := h.src[end : end+strings.IndexByte(h.src[end:]+"\n", '\n')]
	behind := strings.TrimLeft(rest, " ,")
	if strings.TrimSpace(h.src[line:start]) != "" || behind != "" && behind[0] != '#' {
		h.delete(start, end)
		return
	}
	for line > 0 { // comments directly above
		above := strings.LastIndexByte(h.src[:line-1], '\n') + 1
		if !strings.HasPrefix(strings.TrimSpace(h.src[above:line]), "#") {
			break
		}
		line = above
	}
	h.delete(line, min(end+len(rest)+1, len(h.src)))
}

// hit reports whether an expression refers to what was removed.
func (h *hclCutter) hit(e hclsyntax.Expression) bool {
	return slices.ContainsFunc(hclsyntax.Variables(e), func(t hcl.Traversal) bool {
		return h.gone[addressIn(t)]
	})
}

// expr cuts an expression and reports whether it goes with its unit.
func (h *hclCutter) expr(e hclsyntax.Expression) bool {
	if !h.hit(e) && !h.mentions(h.text(e.Range())) {
		return false
	}
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return h.expr(e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return h.expr(e.Wrapped)
	case *hclsyntax.ObjectConsExpr:
		return h.object(e)
	case *hclsyntax.TupleConsExpr:
		return h.list(e.Exprs, e.SrcRange.End.Byte-1)
	case *hclsyntax.FunctionCallExpr:
		return h.call(e)
	case *hclsyntax.ForExpr:
		if h.expr(e.CollExpr) || e.KeyExpr != nil && h.expr(e.KeyExpr) || h.expr(e.ValExpr) {
			return true
		}
		if e.CondExpr == nil {
			return false
		}
		holds := h.truth(e.CondExpr)
		if holds == 1 {
			h.delete(e.ValExpr.Range().End.Byte, e.CondExpr.Range().End.Byte)
		}
		return holds == -1
	case *hclsyntax.ConditionalExpr:
		return h.conditional(e)
	case *hclsyntax.BinaryOpExpr, *hclsyntax.UnaryOpExpr:
		return h.truth(e) != 0
	case *hclsyntax.TemplateExpr:
		return h.template(e)
	}
	return true
}

// conditional leaves the result that is the only one now.
func (h *hclCutter) conditional(e *hclsyntax.ConditionalExpr) bool {
	switch h.truth(e.Condition) {
	case -1:
		h.delete(e.SrcRange.Start.Byte, e.FalseResult.Range().Start.Byte)
		return h.expr(e.FalseResult)
	case 1:
		h.delete(e.SrcRange.Start.Byte, e.TrueResult.Range().Start.Byte)
		h.delete(e.TrueResult.Range().End.Byte, e.SrcRange.End.Byte)
		return h.expr(e.TrueResult)
	}
	a, b := h.expr(e.TrueResult), h.expr(e.FalseResult)
	return a || b
}

// empty reports whether only an empty list or object is left of a conditional.
func (h *hclCutter) empty(e hclsyntax.Expression) bool {
	c, ok := e.(*hclsyntax.ConditionalExpr)
	if !ok || !h.deleted(c.Condition.Range()) {
		return false
	}
	left := c.TrueResult.Range()
	if h.deleted(left) {
		left = c.FalseResult.Range()
	}
	return h.text(left) == "[]" || h.text(left) == "{}"
}

func (h *hclCutter) template(e *hclsyntax.TemplateExpr) bool {
	if !strings.HasPrefix(h.text(e.SrcRange), "<<") {
		return true
	}
	return h.heredoc(e, h.dropLines)
}

// heredoc cuts the lines between the marks of a text, and reports whether none is left.
func (h *hclCutter) heredoc(e *hclsyntax.TemplateExpr, cut func(lines []string) []string) bool {
	source := h.text(e.SrcRange)
	lines := splitLines(source)
	kept := cut(lines[1 : len(lines)-1])
	if len(kept) == 0 {
		return true
	}
	text := joinLines(slices.Concat(lines[:1], kept, lines[len(lines)-1:]))
	if strings.HasSuffix(source, "\n") {
		text += "\n"
	}
	h.replace(e.SrcRange, text)
	return false
}

// proseOf cuts the sentences of a text, and reports whether none is left.
func (h *hclCutter) proseOf(e hclsyntax.Expression) bool {
	t, ok := e.(*hclsyntax.TemplateExpr)
	if !ok {
		return h.expr(e)
	}
	source := h.text(t.SrcRange)
	if strings.HasPrefix(source, "<<") {
		return h.heredoc(t, func(lines []string) []string {
			return h.rewrap(lines, strings.Repeat(" ", max(0, indent(lines[0]))), 120)
		})
	}
	rest := h.prose(source[1 : len(source)-1])
	if rest == "" {
		return true
	}
	h.replace(t.SrcRange, `"`+rest+`"`)
	return false
}

func (h *hclCutter) object(e *hclsyntax.ObjectConsExpr) bool {
	var ranges []hcl.Range
	var goes []bool
	for _, item := range e.Items {
		key, value := h.text(item.KeyExpr.Range()), item.ValueExpr
		out := h.mentions(key) || h.expr(item.KeyExpr)
		switch {
		case out:
		case isProse.MatchString(key) && h.mentions(h.text(value.Range())):
			if out = h.proseOf(value); out {
				h.refuse(h.text(value.Range()), "the only sentence of a text")
			}
		default:
			if out = h.expr(value); out && isTitle.MatchString(key) {
				return true
			}
		}
		ranges = append(ranges, hcl.RangeBetween(item.KeyExpr.Range(), value.Range()))
		goes = append(goes, out)
	}
	return h.elements(ranges, goes, e.SrcRange.End.Byte-1)
}

func (h *hclCutter) list(exprs []hclsyntax.Expression, end int) bool {
	var ranges []hcl.Range
	var goes []bool
	for _, e := range exprs {
		ranges, goes = append(ranges, e.Range()), append(goes, h.expr(e))
	}
	return h.elements(ranges, goes, end)
}

func (h *hclCutter) call(e *hclsyntax.FunctionCallExpr) bool {
	if !variadic.MatchString(e.Name) {
		return slices.ContainsFunc(e.Args, h.expr)
	}
	args := e.Args
	if e.Name == "join" || e.Name == "format" { // the first is no list
		if args = args[1:]; h.expr(e.Args[0]) {
			return true
		}
	}
	var left []hclsyntax.Expression
	var ranges []hcl.Range
	var goes []bool
	for i, arg := range args {
		r, out := arg.Range(), h.expr(arg) || h.empty(arg)
		if i == len(args)-1 && e.ExpandFinal {
			r.End.Byte += strings.Index(h.src[r.End.Byte:], "...") + 3
		}
		if ranges, goes = append(ranges, r), append(goes, out); !out {
			left = append(left, arg)
		}
	}
	if len(left) == 1 && len(args) > 1 && len(args) == len(e.Args) && (!e.ExpandFinal || goes[len(goes)-1]) {
		h.delete(e.NameRange.Start.Byte, left[0].Range().Start.Byte)
		h.delete(left[0].Range().End.Byte, e.CloseParenRange.End.Byte)
		return false
	}
	return h.elements(ranges, goes, e.CloseParenRange.Start.Byte)
}

// elements deletes those elements of a list that go, with their separators and comments.
// It reports whether none is left. The list's closing bracket is at end.
func (h *hclCutter) elements(ranges []hcl.Range, goes []bool, end int) bool {
	if !slices.Contains(goes, false) && len(goes) > 0 {
		return true
	}
	comma := -1 // end of the comma behind the last element that stays
	for i, r := range ranges {
		from, to := r.Start.Byte, r.End.Byte
		next := end
		if i+1 < len(ranges) {
			next = ranges[i+1].Start.Byte
		}
		after, newline := h.separator(to, next)
		if !goes[i] {
			if comma = -1; after > to {
				comma = after
			}
			continue
		}
		if newline || next == end && strings.Contains(h.src[to:end], "\n") {
			line := strings.LastIndexByte(h.src[:from], '\n') + 1
			if strings.TrimSpace(h.src[line:from]) == "" {
				h.item(hcl.Range{Start: r.Start, End: hcl.Pos{Byte: to}})
				continue
			}
		}
		after = max(after, to)
		if next == end {
			from = len(strings.TrimRight(h.src[:from], " "))
		} else {
			after += len(h.src[after:]) - len(strings.TrimLeft(h.src[after:], " "))
		}
		h.delete(from, after)
	}
	if n := len(ranges) - 1; n >= 0 && goes[n] && comma > 0 {
		if own, _ := h.separator(ranges[n].End.Byte, end); own <= ranges[n].End.Byte {
			h.delete(comma-1, comma)
		}
	}
	return false
}

// separator returns the end of the comma between two positions, or the first position,
// and whether a line ends there.
func (h *hclCutter) separator(from, to int) (end int, newline bool) {
	end = from
	for _, t := range h.tokens {
		if t.Range.Start.Byte < from || t.Range.Start.Byte >= to {
			continue
		}
		if t.Type == hclsyntax.TokenComma {
			end = t.Range.End.Byte
		}
		newline = newline || strings.HasSuffix(string(t.Bytes), "\n")
	}
	return end, newline
}

// truth cuts a condition: 1 and -1 if it is true or false now, 0 if it still depends.
// What mentions a part counts as false.
func (h *hclCutter) truth(e hclsyntax.Expression) int {
	if !h.hit(e) && !h.mentions(h.text(e.Range())) {
		return 0
	}
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return h.truth(e.Expression)
	case *hclsyntax.UnaryOpExpr:
		return -h.truth(e.Val)
	case *hclsyntax.BinaryOpExpr:
		if e.Op == hclsyntax.OpLogicalAnd || e.Op == hclsyntax.OpLogicalOr {
			return h.operands(e)
		}
		if a, b := h.expr(e.LHS), h.expr(e.RHS); !a && !b {
			return 0
		}
		null := h.text(e.LHS.Range()) == "null" || h.text(e.RHS.Range()) == "null"
		if null == (e.Op == hclsyntax.OpEqual) && (null || e.Op == hclsyntax.OpNotEqual) {
			return 1
		}
		return -1
	}
	if h.expr(e) {
		return -1
	}
	return 0
}

func (h *hclCutter) operands(e *hclsyntax.BinaryOpExpr) int {
	a, b := h.truth(e.LHS), h.truth(e.RHS)
	decides := -1 // false decides &&
	if e.Op == hclsyntax.OpLogicalOr {
		decides = 1
	}
	switch {
	case a == 0 && b == 0:
		return 0
	case a != 0 && b != 0:
		if a == b {
			return a
		}
		return decides
	case a+b == decides && !h.assert:
		return decides
	case a != 0:
		h.delete(e.LHS.Range().Start.Byte, e.RHS.Range().Start.Byte)
	default:
		h.delete(e.LHS.Range().End.Byte, e.RHS.Range().End.Byte)
	}
	return 0
}

// comments cuts the sentences of comments that mention.
func (h *hclCutter) comments() {
	for i := 0; i < len(h.tokens); i++ {
		t := h.tokens[i]
		if t.Type != hclsyntax.TokenComment {
			continue
		}
		start, end := t.Range.Start.Byte, t.Range.End.Byte
		line := strings.LastIndexByte(h.src[:start], '\n') + 1
		prefix := h.src[line:start]
		if strings.TrimSpace(prefix) != "" { // behind code
			if h.mentions(string(t.Bytes)) {
				h.delete(line+len(strings.TrimRight(prefix, " ")), line+len(strings.TrimRight(h.src[line:end], "\n")))
			}
			continue
		}
		paragraph := func(t hclsyntax.Token) bool { return strings.TrimSpace(string(t.Bytes)) != "#" }
		for i+1 < len(h.tokens) && h.tokens[i+1].Type == hclsyntax.TokenComment && paragraph(h.tokens[i]) &&
			paragraph(h.tokens[i+1]) && strings.TrimSpace(h.src[end:h.tokens[i+1].Range.Start.Byte]) == "" &&
			!strings.Contains(h.src[end:h.tokens[i+1].Range.Start.Byte], "\n") {
			i++
			end = h.tokens[i].Range.End.Byte
		}
		if text := h.src[line:end]; h.mentions(text) {
			lines := h.rewrap(splitLines(text), prefix+"# ", 95)
			h.edits = append(h.edits, edit{line, end, strings.TrimPrefix(joinLines(lines)+"\n", "\n")})
		}
	}
}
