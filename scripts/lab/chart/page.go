package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WritePage replaces what a page below the folder docs has from a heading on, and writes
// the chart of the page. People write what is before the heading.
func WritePage(docs, page, heading, generated, chart, svg string) error {
	page = filepath.Join(docs, page)
	before, err := os.ReadFile(page) //nolint:gosec // G304: the page in the folder of the command line
	if err != nil {
		return err
	}
	text, _, found := strings.Cut(string(before), heading)
	if !found {
		return fmt.Errorf("%s: no heading %q", page, heading)
	}
	//nolint:gosec // G306: docs are public
	if err := os.WriteFile(filepath.Join(docs, chart), []byte(svg), 0o644); err != nil {
		return err
	}
	return os.WriteFile(page, []byte(text+heading+generated), 0o644) //nolint:gosec // G306: as above
}

// Table returns a table with a header, to print or as Markdown.
func Table(header ...any) table.Writer { //nolint:ireturn // the library has no concrete type
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(header)
	return t
}
