// Command grow is `make grow`. It simulates how many orders a second a deployment
// settles: the queue, its event source mapping, the table and the limits of Stripe, on a
// virtual clock. It predicts which limit is reached first, and nothing of it is measured.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	lab "orderonce/scripts/lab/chart"
	"orderonce/scripts/lab/progress"
)

const about = `Simulate how many orders a second a deployment settles, and what it reaches first: the table of
docs/guides/grow.md, or with --rate one setup of your own, such as
--rate=3000 --concurrency=0 --stripe=9000 --warm=40000.

Each order makes the calls of the product: Begin, Prepare, Bind, Confirm, Finish. Partitions, shards of the
index and limits of Stripe are token buckets. What is refused is repeated as the product does, and comes
back when its visibility timeout ends. The ten orders of a batch go as one, which 100,000 a second need.

"arithmetic" is what a division says, "settled" what the simulation did in the last fifth of the time, and
"reached" which limit refused a twentieth of what was settled, or let messages wait, and since when.`

type arguments struct {
	setup `embed:""`

	Seed uint64 `default:"1" help:"Of what is random."`
	Docs string `help:"Also write guides/grow.md and grow.svg in this folder."`
}

func main() {
	var a arguments
	k := kong.Parse(&a, kong.Name("grow"), kong.UsageOnError(), kong.Description(about))
	all := scenarios()
	if a.Rate > 0 {
		all, a.Docs = []scenario{{Name: "yours", setup: a.setup}}, ""
	}
	say := progress.Every(2*time.Second, os.Stderr, time.Now)
	for n := range all {
		say("%d of %d simulated", n, len(all))
		all[n].report = newSystem(all[n].setup, a.Seed).run()
	}
	_, err := fmt.Fprintf(os.Stdout, "%s\nSeed %d.\n", figures(all).Render(), a.Seed)
	if a.Docs != "" {
		err = write(a.Docs, all)
	}
	k.FatalIfErrorf(err)
}

// head starts what is generated of the page. People write what is before it.
const head = "\n## The table\n\n"

func write(docs string, all []scenario) error {
	text := figures(all).RenderMarkdown() + "\n"
	return lab.WritePage(docs, "guides/grow.md", head, text, "grow.svg", chart(all))
}

func figures(all []scenario) table.Writer { //nolint:ireturn // the library has no concrete type
	t := lab.Table(
		"setup", "sent a second", "arithmetic", "settled", "p50", "p99", "most waiting", "reached, at minute",
	)
	for _, s := range all {
		r := &s.report
		t.AppendRow(table.Row{
			s.Name, digits(float64(s.Rate)), digits(s.arithmetic()), digits(r.rate()), r.within(0.5), r.within(0.99),
			digits(float64(r.waiting)), strings.Join(r.walls, ", "),
		})
	}
	var right []table.ColumnConfig
	for n := range 6 {
		right = append(right, table.ColumnConfig{Number: n + 2, Align: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	return t
}

// digits prints three digits of a number, and zeros for the rest.
func digits(v float64) string {
	unit := 1.0
	for v/unit >= 1000 {
		unit *= 10
	}
	text := strconv.Itoa(int(v/unit+0.5) * int(unit))
	for n := len(text) - 3; n > 0; n -= 3 {
		text = text[:n] + "," + text[n:]
	}
	return text
}
