package infra_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// metrics returns how many alarms with how many metrics match a pattern, of the essential
// ones and of all. CloudWatch charges for each metric of an alarm.
func metrics(t *testing.T, pattern string) (alarmsOf, metricsOf [2]int) {
	t.Helper()
	kept, named := essential(t), regexp.MustCompile(pattern)
	for name, a := range alarms(t) {
		if !named.MatchString(name) {
			continue
		}
		for i := range 2 {
			if i == 1 || slices.Contains(kept, name) {
				alarmsOf[i]++
				metricsOf[i] += len(a.metrics)
			}
		}
	}
	return alarmsOf, metricsOf
}

// In cents, so that sums are exact.
func TestTheGuideStatesWhatAnIdleDeploymentCosts(t *testing.T) {
	table := section(t, "../docs/guides/deploy.md", "\n| idle, a month |", "\n\n")
	got, sum, total := map[string]string{}, [3]int{}, ""
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		got[cells[0]] = strings.Join(append(regexp.MustCompile(`\d+ x|(\d+ .*?)? x`).FindAllString(cells[1], 1), cells[2:]...), " | ")
		if cells[0] == "**total**" {
			total = strings.ReplaceAll(strings.Join(cells[2:], " "), "**", "")
		}
		for i, cell := range cells[2:] {
			if total == "" {
				var dollars, cents int
				if _, err := fmt.Sscanf(cell, "%d.%d", &dollars, &cents); err != nil {
					t.Fatal(row, err)
				}
				sum[i] += 100*dollars + cents
			}
		}
	}
	money := func(essential, all, none int) string {
		return fmt.Sprintf("%d.%02d | %d.%02d | %d.%02d", essential/100, essential%100, all/100, all%100, none/100, none%100)
	}
	optional := `^(intake|receipts?|subscriber)-`
	every, everyMetric := metrics(t, "")
	options, optionsMetric := metrics(t, optional)
	secrets := len(strings.Split(matches(t, `keys\(output\.secrets\) == \[(.*?)\]`, module+"tests/parts.tftest.hcl")[0], ","))
	keys := strings.Count(strings.Join(matches(t, `(?s)(.*)`, module+"*.tf"), ""), `resource "aws_kms_key"`)
	want := map[string]string{
		"alarms": fmt.Sprintf("%d alarms with %d metrics, or %d with %d, x | %s",
			every[0]-options[0], everyMetric[0]-optionsMetric[0], every[1]-options[1], everyMetric[1]-optionsMetric[1],
			money(10*(everyMetric[0]-optionsMetric[0]), 10*(everyMetric[1]-optionsMetric[1]), 0)),
		"secrets": fmt.Sprintf("%d x | %s", secrets, money(40*secrets, 40*secrets, 40*secrets)),
		"keys":    fmt.Sprintf("%d x | %s", keys, money(100*keys, 100*keys, 100*keys)),
	}
	for row, of := range map[string]struct {
		pattern string
		other   int
	}{
		"less without `create_refund`": {"^refunds?-", 26}, "more with `create_receipts`": {"^receipts?-", 26},
		"more with `create_intake`": {"^intake-", 0}, "less without `create_webhook`": {"^(webhook-|dispute$)", 40},
	} {
		_, n := metrics(t, of.pattern)
		want[row] = fmt.Sprintf("%d or %d metrics x | %s", n[0], n[1], money(10*n[0]+of.other, 10*n[1]+of.other, of.other))
		variable := matches(t, `(?s)variable "`+strings.Split(row, "`")[1]+`" \{\n  description = "(.*?)\n`, module+"variables.tf")[0]
		if cents := 10*n[0] + of.other; !strings.Contains(variable, fmt.Sprintf(" $%d.%02d a month", cents/100, cents%100)) {
			t.Errorf("%s: the description of the variable says %s, want %d cents a month", row, variable, cents)
		}
	}
	for row := range got {
		if _, counted := want[row]; !counted {
			delete(got, row)
		}
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("idle cost (-docs/guides/deploy.md +the module):\n%s", diff)
	}
	if got := strings.ReplaceAll(money(sum[0], sum[1], sum[2]), " |", ""); got != total {
		t.Errorf("the rows add up to %s, and the total is %s", got, total)
	}
}
