package textcut

import (
	"regexp"
	"slices"
	"strings"
)

var (
	target     = regexp.MustCompile(`^([^\s:=#][^:=]*):(?:[^=]|$)`)
	assignment = regexp.MustCompile(`^((?:export )?[\w-]+ *[:?]?= *)(.*)$`)
	opening    = regexp.MustCompile(`^\s*(if|for|while|until|case)\b|\(\) *\{$`)
	ending     = regexp.MustCompile(`^\s*(fi|done|esac|\})`)
	yamlKey    = regexp.MustCompile(`^\s*(?:- +)?("[^"]*"|'[^']*'|[\w./*&-]+):(?: |$)`)
	list       = regexp.MustCompile(`^(.*?)\[(.*)\](,?(?: +#.*)?)$`)
)

// comment cuts the paragraph of comment lines that begins at lines[i]. It returns what is
// left and the next line.
func (c *cutter) comment(lines []string, i int) (kept []string, next int) {
	prefix := strings.Repeat(" ", indent(lines[i])) + "# "
	j := i
	for j < len(lines) && strings.HasPrefix(lines[j]+" ", prefix) {
		j++
	}
	if j == i || strings.HasPrefix(lines[i], "#!") {
		return lines[i : i+1], i + 1
	}
	return c.rewrap(lines[i:j], prefix, proseWidth), j
}

func isComment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// alternatives cuts the alternatives of regular expressions, and the words of a list,
// that mention.
func (c *cutter) alternatives(text string) string {
	for {
		parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("|()", r) })
		i := slices.IndexFunc(parts, c.mentions)
		if i < 0 {
			return text
		}
		was := text
		if text = strings.Replace(text, "|"+parts[i], "", 1); text == was {
			if text = strings.Replace(text, parts[i]+"|", "", 1); text == was {
				return text
			}
		}
	}
}

func (c *cutter) words(text string) string {
	var kept []string
	for word := range strings.SplitSeq(text, " ") {
		if word = c.alternatives(word); !c.mentions(word) {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// makefile cuts targets with their recipes, prerequisites, and the words and alternatives
// of variables.
func (c *cutter) makefile() string {
	lines := splitLines(c.src)
	var kept []string
	for i := 0; i < len(lines); {
		line := lines[i]
		if isComment(line) {
			comment, next := c.comment(lines, i)
			if next < len(lines) && c.goes(lines[next]) { // of a target that goes
				comment = nil
			}
			kept, i = append(kept, comment...), next
			continue
		}
		j := i + 1
		if strings.HasPrefix(line, "define ") {
			for j < len(lines) && lines[j-1] != "endef" {
				j++
			}
			if !c.mentions(strings.Join(lines[i:j], "\n")) {
				kept = append(kept, lines[i:j]...)
			} else if j < len(lines) && lines[j] == "" {
				j++
			}
			i = j
			continue
		}
		for j < len(lines) && (strings.HasPrefix(lines[j], "\t") || strings.HasSuffix(lines[j-1], `\`)) {
			j++
		}
		computed := assignment.MatchString(line) && c.mentions(line) && strings.Contains(line, "$(")
		if phony, rest, is := strings.Cut(line, ": "); is && phony == ".PHONY" {
			line = phony + ": " + strings.Join(slices.DeleteFunc(strings.Fields(rest), func(name string) bool {
				return c.mentions("make " + name)
			}), " ")
		}
		if !c.goes(line) && !computed {
			rest, help, found := strings.Cut(line, " ## ")
			if c.mentions(line) && (target.MatchString(line) || assignment.MatchString(line)) {
				if line = c.words(rest); found {
					line += " ## " + c.clauses(help)
				}
			}
			if target.MatchString(line) || !c.mentions(line) {
				kept = append(kept, line)
				kept = append(kept, c.dropLines(lines[i+1:j])...)
			}
		} else if j < len(lines) && lines[j] == "" && len(kept) > 0 && kept[len(kept)-1] == "" {
			j++
		}
		i = j
	}
	return joinLines(kept)
}

// goes reports whether a line names a target or a variable that mentions.
func (c *cutter) goes(line string) bool {
	if m := target.FindStringSubmatch(line); m != nil && c.mentions("make "+m[1]) {
		return true
	}
	m := assignment.FindStringSubmatch(line)
	return m != nil && c.mentions(m[1])
}

// clauses cuts the clauses of a text that mention.
func (c *cutter) clauses(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "; "), c.mentions), "; ")
}

// shell cuts lines, and blocks whose condition mentions.
func (c *cutter) shell() string {
	lines := splitLines(c.src)
	var kept []string
	for i := 0; i < len(lines); {
		j := i + 1
		switch {
		case isComment(lines[i]):
			var comment []string
			comment, j = c.comment(lines, i)
			kept = append(kept, comment...)
		case opening.MatchString(lines[i]) && c.mentions(lines[i]):
			for j < len(lines) && (indent(lines[j]) != indent(lines[i]) || !ending.MatchString(lines[j])) {
				j++
			}
			j++
		default:
			for j < len(lines) && strings.HasSuffix(lines[j-1], `\`) {
				j++
			}
			kept = append(kept, c.dropLines(lines[i:j])...)
		}
		i = j
	}
	return tidy(joinLines(kept))
}

func (c *cutter) yaml() string { return joinLines(c.yamlNodes(splitLines(c.src))) }

// yamlNodes cuts the items and members of lines, which are of one level or deeper.
func (c *cutter) yamlNodes(lines []string) (kept []string) {
	for i := 0; i < len(lines); {
		if isComment(lines[i]) {
			comment, next := c.comment(lines, i)
			kept, i = append(kept, comment...), next
			continue
		}
		j, deep := i+1, indent(lines[i])
		item := strings.HasPrefix(strings.TrimSpace(lines[i]), "- ")
		for j < len(lines) && deep >= 0 {
			in := indent(lines[j])
			if in < 0 && j+1 < len(lines) { // a blank line
				in = indent(lines[j+1])
			}
			if in < deep || in == deep && (item || !strings.HasPrefix(strings.TrimSpace(lines[j]), "- ")) {
				break
			}
			j++
		}
		kept = append(kept, c.yamlNode(lines[i:j])...)
		i = j
	}
	return kept
}

// yamlNode cuts an item or a member, with what is below it.
func (c *cutter) yamlNode(lines []string) []string {
	if !c.mentions(joinLines(lines)) {
		return lines
	}
	first := lines[0]
	key := yamlKey.FindString(first)
	switch value := strings.TrimSpace(first[len(key):]); {
	case c.mentions(key):
		return nil
	case c.mentions(first):
		if first = c.yamlValue(first); first == "" {
			return nil
		}
	case value == ">-" || value == ">":
		text := c.rewrap(lines[1:], strings.Repeat(" ", max(0, indent(lines[1]))), 140)
		if len(text) == 0 {
			return nil
		}
		return append([]string{first}, text...)
	case value == "|":
		text := c.dropLines(lines[1:])
		if len(text) == 0 {
			return nil
		}
		return append([]string{first}, text...)
	}
	below := c.yamlNodes(lines[1:])
	if len(lines) > 1 && len(below) == 0 && strings.HasSuffix(key, ":") {
		return nil
	}
	return append([]string{first}, below...)
}

// yamlValue cuts the elements of a list in brackets, alternatives, and a comment behind a
// value.
func (c *cutter) yamlValue(line string) string {
	if value, _, found := strings.Cut(line, " # "); found && !c.mentions(value) {
		return value
	}
	if m := list.FindStringSubmatch(line); m != nil && !c.mentions(m[1]) {
		if kept := slices.DeleteFunc(strings.Split(m[2], ", "), c.mentions); len(kept) > 0 {
			return m[1] + "[" + strings.Join(kept, ", ") + "]" + m[3]
		}
		return ""
	}
	if line = c.alternatives(line); c.mentions(line) {
		return ""
	}
	return line
}
