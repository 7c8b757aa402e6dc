package textcut

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	code        = regexp.MustCompile("`[^`\n]*(?:\n[^`\n]+)?`")
	fencedBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	link        = regexp.MustCompile(`!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)`)
)

// Links returns the links of a tree's Markdown files that lead nowhere, each as
// "PATH:LINE: TARGET".
func Links(tree fs.FS) (dead []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".md" {
			return err
		}
		src, err := fs.ReadFile(tree, name)
		text := mask(string(src))
		for _, m := range link.FindAllStringSubmatchIndex(text, -1) {
			if target := text[m[4]:m[5]]; !leads(tree, name, target) {
				dead = append(dead, fmt.Sprintf("%s:%d: %s", name, strings.Count(text[:m[0]], "\n")+1, target))
			}
		}
		return err
	})
	return dead, err
}

// mask replaces fenced blocks and code by spaces.
func mask(src string) string {
	space := func(text string) string {
		spaces := []byte(strings.Repeat(" ", len(text)))
		for i := range spaces {
			if text[i] == '\n' {
				spaces[i] = '\n'
			}
		}
		return string(spaces)
	}
	return code.ReplaceAllStringFunc(fencedBlock.ReplaceAllStringFunc(src, space), space)
}

// leads reports whether the target of a link in the Markdown file name of a tree leads
// to a file, and to one of its headings. It knows nothing of other hosts: those exist.
func leads(tree fs.FS, name, target string) bool {
	if strings.Contains(target, ":") {
		return true
	}
	file, anchor, found := strings.Cut(target, "#")
	if file = path.Join(path.Dir(name), file); strings.HasPrefix(target, "#") {
		file = name
	}
	if !found || path.Ext(file) != ".md" {
		_, err := fs.Stat(tree, file)
		return err == nil
	}
	src, err := fs.ReadFile(tree, file)
	return err == nil && anchors(string(src))[anchor]
}

// anchors returns the anchors of a file's headings, by the rule of GitHub.
func anchors(src string) map[string]bool {
	all := map[string]bool{}
	for _, b := range parseBlocks(splitLines(src)) {
		if b.kind != 'h' {
			continue
		}
		text := link.ReplaceAllString(heading.FindStringSubmatch(b.lines[0])[2], "$1")
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, text)
		same := anchor
		for n := 1; all[same]; n++ {
			same = fmt.Sprintf("%s-%d", anchor, n)
		}
		all[same] = true
	}
	return all
}

// Unlink turns the links of a tree's Markdown file that lead nowhere into their plain
// text. A list item, row or sentence that is such a link and nothing else goes, and one
// that says behind the link and a colon what is there.
func Unlink(tree fs.FS, src []byte, name string) []byte {
	c := &cutter{path: name, src: string(src), verbatim: true, mentions: func(text string) bool {
		for _, line := range splitLines(text) {
			m := link.FindStringSubmatch(line)
			if m == nil || leads(tree, name, m[2]) {
				continue
			}
			before, after, _ := strings.Cut(line, m[0])
			entry := strings.Trim(before, " -*") == "" && strings.HasPrefix(after, ": ") // of a list of pages
			if entry || strings.Trim(before+after, " .:-*|`") == "" {
				return true
			}
		}
		return false
	}}
	out := c.markdown() + "\n"
	all := link.FindAllStringSubmatchIndex(mask(out), -1)
	for _, m := range slices.Backward(all) {
		if !leads(tree, name, out[m[4]:m[5]]) {
			out = out[:m[0]] + out[m[2]:m[3]] + out[m[1]:]
		}
	}
	return []byte(out)
}
