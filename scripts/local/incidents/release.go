package incidents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/domain/order"
)

func badRelease() Runbook {
	return Runbook{
		Title: "8. A bad release was deployed",
		Seen: `The alarm dead-letters, some minutes after the order function was deployed.
The function has one alias and two versions: the last good one is known.`,
		happens: func(i *Incident) {
			bad := i.patched("domain/order/order.go", "check(ValidCurrency(d.Currency)", `check(d.Currency == "eur"`)
			i.post(Sale("ORD-8001", 2400, Pays))
			must(i.Function.Replace(bad))
			i.post(Sale("ORD-8002", 2400, Pays), Sale("ORD-8003", 2400, Pays))
		},
		events: []Event{{Name: "the last good version is live", happens: func(i *Incident) {
			must(i.Function.Replace(i.built("order")))
		}}},
		leads: map[order.ID]order.Status{"ORD-8001": order.Paid, "ORD-8002": order.Paid, "ORD-8003": order.Paid},
	}
}

// patched compiles the order function with another text in place of one that occurs once
// in a source file, and returns the path of the binary: a later release, or a bad one.
func (i *Incident) patched(file, before, after string) string {
	path, err := filepath.Abs(filepath.Join(i.setup.Root, file))
	must(err)
	source, err := os.ReadFile(filepath.Clean(path))
	must(err)
	if strings.Count(string(source), before) != 1 {
		must(fmt.Errorf("%s does not hold %q once", file, before))
	}
	in := func(name string) string { return filepath.Join(i.setup.Folder, name) }
	patched, overlay, binary := in("patched.txt"), in("overlay.json"), in("patched")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: patched}})
	must(err)
	text := strings.Replace(string(source), before, after, 1)
	must(os.WriteFile(patched, []byte(text), 0o600)) //nolint:gosec // G703: the caller's folder
	must(os.WriteFile(overlay, replace, 0o600))
	program := lambdatest.Program{Package: "functions/order", Root: i.setup.Root, Overlay: overlay}
	must(program.Build(i.ctx, binary))
	return binary
}
