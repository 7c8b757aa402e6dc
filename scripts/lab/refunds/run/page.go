package main

import (
	_ "embed"
	"fmt"
	"os"
	"strings"
	"text/template"

	"orderonce/scripts/lab/refunds"
)

//go:embed page.tmpl
var page string

// writePage writes docs/reference/refund-proof.md.
func writePage(o options, searched string, protocols, rules []row) error {
	var unknown, excused []string
	for _, class := range refunds.Classes() {
		r := protocols[0].Reports[class]
		unknown = append(unknown, fmt.Sprintf("%d in %s worlds", r.Unknown, class))
		excused = append(excused, fmt.Sprintf("%d %s worlds", r.Excused, class))
	}
	t, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]any{
		"Searched": searched, "Faults": o.Faults, "Worlds": o.Worlds, "Seed": o.Seed, "Unknown": strings.Join(unknown, ", "),
		"Excused":   strings.Join(excused, ", "),
		"Protocols": table("protocol", protocols), "Rules": table("without", rules),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(o.Page, []byte(b.String()), 0o600)
}
