package textcut

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const proseWidth = 100

var (
	heading  = regexp.MustCompile(`^(#{1,6}) (.*)`)
	listItem = regexp.MustCompile(`^([-*+]|\d+[.)])( +)`)
	fence    = regexp.MustCompile("^(```+|~~~+) *([\\w-]*)")

	onlyComments = regexp.MustCompile(`^\s*(#[^\n]*\s*)*$`)
)

// A block of Markdown.
type block struct {
	kind  byte // h: heading, i: list item, f: fenced, t: table, !: HTML, p: paragraph
	level int  // of a heading
	lines []string
	gap   bool // a blank line stands before it
}

func (c *cutter) markdown() string {
	return joinLines(c.blocks(splitLines(c.src)))
}

// help cuts the help of commands, which is much like Markdown: a section for each command
// below "== " and its name, paragraphs, and indented entries, which may go on in lines
// that are indented more.
func (c *cutter) help() string {
	const mark = "```"
	mentions := c.mentions
	c.mentions = func(text string) bool { return mentions(strings.ReplaceAll(text, "## ", "== ")) }
	var lines, out []string
	inside := false
	for _, line := range append(splitLines(c.src), "") {
		in := indent(line)
		if in > 2 && inside {
			lines[len(lines)-1] += "\n" + line
			continue
		}
		if (in > 0) != inside {
			inside = in > 0
			lines = append(lines, mark)
		}
		if name, found := strings.CutPrefix(line, "== "); found {
			line = "## " + name
		}
		lines = append(lines, line)
	}
	for _, line := range c.blocks(lines) {
		if name, found := strings.CutPrefix(line, "## "); found {
			line = "== " + name
		}
		if line != mark {
			out = append(out, line)
		}
	}
	return joinLines(out)
}

// parseBlocks splits lines into blocks.
func parseBlocks(lines []string) (all []block) {
	gap := false
	for i := 0; i < len(lines); {
		line := lines[i]
		if strings.TrimSpace(line) == "" {
			gap = true
			i++
			continue
		}
		b := block{kind: 'p', gap: gap}
		j := i + 1
		switch {
		case fence.MatchString(line):
			b.kind = 'f'
			for mark := fence.FindStringSubmatch(line)[1]; j < len(lines) && !strings.HasPrefix(lines[j], mark); {
				j++
			}
			j = min(j+1, len(lines))
		case heading.MatchString(line):
			b.kind, b.level = 'h', len(heading.FindStringSubmatch(line)[1])
		case strings.HasPrefix(line, "<"):
			b.kind, j = '!', endOfHTML(lines, i)
		case strings.HasPrefix(line, "|"):
			b.kind = 't'
			for j < len(lines) && strings.HasPrefix(lines[j], "|") {
				j++
			}
		case listItem.MatchString(line):
			b.kind, j = 'i', endOfItem(lines, i)
		default:
			for j < len(lines) && strings.TrimSpace(lines[j]) != "" && !startsBlock(lines[j]) {
				j++
			}
		}
		b.lines = lines[i:j]
		all, gap, i = append(all, b), false, j
	}
	return all
}

func endOfHTML(lines []string, i int) int {
	end := func(line string) bool { return strings.TrimSpace(line) == "" }
	if strings.HasPrefix(lines[i], "<!--") {
		end = func(line string) bool { return strings.Contains(line, "-->") }
	} else if strings.HasPrefix(lines[i], "<details") {
		end = func(line string) bool { return strings.HasPrefix(line, "</details") }
	}
	for ; i < len(lines); i++ {
		if end(lines[i]) && strings.TrimSpace(lines[i]) == "" {
			return i
		} else if end(lines[i]) {
			return i + 1
		}
	}
	return i
}

func endOfItem(lines []string, i int) int {
	deep := len(listItem.FindString(lines[i]))
	j := i + 1
	for ; j < len(lines); j++ {
		if in := indent(lines[j]); in >= 0 && in < deep &&
			(in == 0 && strings.TrimSpace(lines[j-1]) == "" || startsBlock(strings.TrimLeft(lines[j], " "))) {
			break
		}
	}
	for strings.TrimSpace(lines[j-1]) == "" {
		j--
	}
	return j
}

func startsBlock(line string) bool {
	return fence.MatchString(line) || heading.MatchString(line) || listItem.MatchString(line) ||
		strings.HasPrefix(line, "|")
}

// blocks cuts the blocks of lines, and returns the lines that are left.
func (c *cutter) blocks(lines []string) []string {
	if !c.mentions(joinLines(lines)) {
		return lines
	}
	all := parseBlocks(lines)
	was := make([]bool, len(all)) // it was something and is nothing
	for i := 0; i < len(all); i++ {
		b := &all[i]
		if b.kind == 'h' && c.mentions(b.lines[0]) {
			for j := i; j == i || j < len(all) && (all[j].kind != 'h' || all[j].level > b.level); j++ {
				all[j].lines, was[j] = nil, true
				i = j
			}
			continue
		}
		b.lines = c.block(*b)
		was[i] = len(b.lines) == 0
	}
	c.introductions(all, was, parseBlocks(lines))
	for i := len(all) - 1; i >= 0; i-- { // headings of nothing
		if all[i].kind != 'h' || was[i] {
			continue
		}
		j, cut := i+1, false
		for ; j < len(all) && was[j]; j++ {
			cut = cut || all[j].kind != 'h' || all[j].level > all[i].level
		}
		if cut && (j == len(all) || all[j].kind == 'h' && all[j].level <= all[i].level) {
			all[i].lines, was[i] = nil, true
		}
	}
	return emit(all, was)
}

// emit joins the blocks that are left, and numbers the items of a list anew.
func emit(all []block, gone []bool) (out []string) {
	gap, number, cut := false, 0, false
	for i, b := range all {
		gap = gap || b.gap
		if gone[i] {
			cut = cut || b.kind == 'i'
			continue
		}
		if gap && len(out) > 0 {
			out = append(out, "")
		}
		if b.kind != 'i' || !isDigit(b.lines[0][0]) {
			number, cut = 0, b.kind == 'i' && cut
		} else if number++; cut {
			mark := listItem.FindStringSubmatch(b.lines[0])[1]
			b.lines = slices.Clone(b.lines)
			b.lines[0] = fmt.Sprintf("%d%s%s", number, mark[len(mark)-1:], b.lines[0][len(mark):])
		}
		out, gap = append(out, b.lines...), false
	}
	return out
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// introductions cuts a last sentence that ends in a colon if what it introduces is gone,
// and refuses the reverse.
func (c *cutter) introductions(all []block, gone []bool, before []block) {
	for i := range all {
		text := joinLines(before[i].lines)
		if before[i].kind != 'p' && before[i].kind != 'i' || !strings.HasSuffix(text, ":") || i+1 == len(all) {
			continue
		}
		kind := all[i+1].kind
		if kind != 'f' && kind != 't' && kind != 'i' || before[i].kind == 'i' && kind == 'i' {
			continue
		}
		left := !gone[i+1]
		for j := i + 2; kind == 'i' && j < len(all) && all[j].kind == 'i'; j++ {
			left = left || !gone[j]
		}
		introduces := !gone[i] && strings.HasSuffix(joinLines(all[i].lines), ":")
		switch {
		case left && !introduces:
			last := before[i].lines[len(before[i].lines)-1]
			c.refuse(last, "a sentence that introduces what stays")
		case !left && introduces:
			rest := Sentences(joinLines(all[i].lines))
			if rest = rest[:len(rest)-1]; len(rest) == 0 {
				all[i].lines, gone[i] = nil, true
			} else {
				all[i].lines = Wrap(strings.Join(rest, " "), proseWidth)
			}
		}
	}
}

// block returns what is left of a block's lines.
func (c *cutter) block(b block) []string {
	if !c.mentions(joinLines(b.lines)) {
		return b.lines
	}
	switch b.kind {
	case 'f':
		return c.fenced(b.lines)
	case 't':
		return c.table(b.lines)
	case 'i':
		return c.item(b.lines)
	case '!':
		if !strings.HasPrefix(b.lines[0], "<details") || c.mentions(b.lines[0]+b.lines[1]) {
			return nil
		}
		inner := c.blocks(b.lines[2 : len(b.lines)-1])
		if len(inner) == 0 {
			return nil
		}
		return slices.Concat(b.lines[:2], []string{""}, inner, []string{""}, b.lines[len(b.lines)-1:])
	}
	return c.rewrap(b.lines, "", proseWidth)
}

// item cuts a list item: all of it if its first sentence mentions.
func (c *cutter) item(lines []string) []string {
	mark := listItem.FindString(lines[0])
	inner := make([]string, len(lines))
	for i, line := range lines {
		inner[i] = line[min(len(line), len(mark), max(0, indent(line))):]
	}
	inner[0] = lines[0][len(mark):]
	first := parseBlocks(inner)[0]
	if first.kind == 'p' && c.mentions(c.names(Sentences(joinLines(first.lines))[0])) {
		return nil
	}
	left := c.blocks(inner)
	for i, line := range left {
		if i == 0 {
			left[i] = mark + line
		} else if line != "" {
			left[i] = strings.Repeat(" ", len(mark)) + line
		}
	}
	return left
}

// cells splits a row of a table.
func cells(row string) []string {
	var all []string
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	start, code := 0, false
	for i := range len(row) {
		switch {
		case row[i] == '`':
			code = !code
		case row[i] == '|' && !code && (i == 0 || row[i-1] != '\\'):
			all = append(all, row[start:i])
			start = i + 1
		}
	}
	return append(all, row[start:])
}

// table cuts the columns whose header mentions, the rows whose first cell does, and the
// clauses of other cells.
func (c *cutter) table(lines []string) []string {
	var columns []int
	for i, header := range cells(lines[0]) {
		if !c.mentions(header) {
			columns = append(columns, i)
		}
	}
	all := len(cells(lines[0])) == len(columns)
	if len(columns) == 0 || !all && len(columns) == 1 {
		return nil
	}
	var kept []string
	for n, line := range lines {
		row := cells(line)
		if n < 2 && all || !c.mentions(line) && all {
			kept = append(kept, line)
			continue
		}
		var out []string
		for _, i := range columns {
			if i < len(row) {
				out = append(out, row[i])
			}
		}
		if n >= 2 && !c.cutCells(out) {
			continue
		}
		kept = append(kept, "|"+strings.Join(out, "|")+"|")
	}
	if len(kept) < 3 && len(lines) > 2 {
		return nil
	}
	return kept
}

// cutCells cuts the cells of a row, and reports whether the row stays.
func (c *cutter) cutCells(row []string) bool {
	for i, cell := range row {
		if !c.mentions(cell) {
			continue
		}
		rest := strings.TrimSpace(cell)
		if list := enumeration.FindString(rest); list == rest {
			rest = strings.Join(c.listed(list), "")
		} else if i > 0 {
			var kept []string
			for n, clause := range strings.Split(rest, "; ") {
				if clause = c.prose(clause); clause == "" && n == 0 {
					return false
				} else if clause != "" {
					kept = append(kept, clause)
				}
			}
			rest = strings.Join(kept, "; ")
		} else {
			rest = ""
		}
		if rest == "" {
			return false
		}
		row[i] = " " + rest + " "
	}
	return true
}

// fenced cuts a fenced block: JSON and HCL by their syntax, commands with their output,
// everything else by line.
func (c *cutter) fenced(lines []string) []string {
	if c.verbatim {
		return lines
	}
	inner := lines[1 : len(lines)-1]
	var kept []string
	switch language := fence.FindStringSubmatch(lines[0])[2]; language {
	case "json", "hcl", "tf":
		out, err := Cut(c.path+"."+language, []byte(joinLines(inner)+"\n"), c.mentions)
		if err != nil || out == nil {
			return nil
		}
		kept = splitLines(string(out))
	default:
		dropped := false
		for _, line := range logical(inner) {
			if strings.HasPrefix(line[0], "$ ") {
				dropped = c.mentions(joinLines(line))
			}
			if !dropped && !c.mentions(joinLines(line)) {
				kept = append(kept, line...)
			}
		}
	}
	if onlyComments.MatchString(joinLines(kept)) {
		return nil
	}
	return slices.Concat(lines[:1], kept, lines[len(lines)-1:])
}
