package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

// mermaid holds the syntax of the lines in use. In a sequence diagram "#" and ";" end a
// message, and in a state diagram ":" ends a label as well; an entity such as #35; is
// a character. In a flowchart a label with brackets or quotation marks needs quotes.
// "end" is a keyword.
// Source: mermaid's lexers sequenceDiagram.jison, stateDiagram.jison and flow.jison.
//
//nolint:gochecknoglobals // a constant table
var mermaid = map[string]*regexp.Regexp{
	"sequenceDiagram": regexp.MustCompile(
		`^  (participant \w+( as [^#;]+)?|\w+--?>>\w+: ([^#;]|#\w+;)+|Note over \w+(,\w+)?: ([^#;]|#\w+;)+)$`),
	"stateDiagram-v2": regexp.MustCompile(`^  (\[\*\]|\w+) --> (\[\*\]|\w+)(: ([^#:;]|#\w+;)+)?$`),
	"flowchart LR":    regexp.MustCompile(`^  \w+(\[[\w. ]+\])? --> \w+(\[[\w. ]+\])?$`),
	"flowchart TB": regexp.MustCompile( // a group is one line, so that nothing is left of it without that line
		`^  (\w+(\(\["[^"]+"\]\))?( -- \w+)? --> \w+(\(\["[^"]+"\]\)|\[\("[^"]+"\)\])?|` +
			`subgraph \w+(\["\w+"\])?;( -->)?( ?\w+\[\(?"[^"]+"\)?\]( -->|;))+ end)$`),
	"flowchart TD": regexp.MustCompile( // with quoted texts, in which only a quotation mark is special
		`^  (\w+\{"[^"]+"\}|\w+( -- \w+)? --> \w+(\["[^"]+"\]|\{"[^"]+"\})?)$`),
}

// wrongLines returns the lines of a mermaid block that do not parse.
func wrongLines(block string) (wrong []string) {
	lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
	syntax, known := mermaid[lines[0]]
	if !known {
		return lines[:1]
	}
	keyword := regexp.MustCompile(`\bend(--?>>|:| -->|$)|(>>|--> |participant )end\b`)
	for _, line := range lines[1:] {
		if !syntax.MatchString(line) || keyword.MatchString(strings.TrimSuffix(line, "; end")) {
			wrong = append(wrong, line)
		}
	}
	return wrong
}

func TestEveryMermaidDiagramParses(t *testing.T) {
	t.Parallel()
	diagrams := 0
	err := filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(filepath.Clean(path))
		for _, fence := range regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
			diagrams++
			for _, line := range wrongLines(fence[1]) {
				t.Errorf("%s: mermaid does not parse the line %q", path, line)
			}
		}
		return err
	})
	if err != nil || diagrams == 0 {
		t.Errorf("%d diagrams, %v, want some and no error", diagrams, err)
	}
}
