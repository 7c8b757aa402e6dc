package main

import (
	"context"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system"
)

const tableVariable = "ORDERS_TABLE"

func baselineTable(s *system.System) string { return s.Options.Env[tableVariable] }

// baselineHandlers returns a handler for each baseline. They share the program of package
// pkg, built into folder; its environment selects the baseline.
func baselineHandlers(pkg, folder string) []run.Handler {
	shared := &programs{folder: folder}
	var all []run.Handler
	for _, b := range baselines.All() {
		all = append(all, run.Handler{
			Name: b.Name, Does: b.Does, Fails: b.Fails, FIFO: b.FIFO,
			Build: func(ctx context.Context, _ string) (string, error) { return shared.build(ctx, pkg) },
			Options: func(o *system.Options) {
				o.Travels = true
				o.Env = map[string]string{
					"BASELINE": b.Name, tableVariable: system.TableIn(o.Engine, "baselines"),
					"FUNCTION_TIMEOUT": o.FunctionTimeout.String(),
				}
			},
			Prepare: createTable,
			Rows:    baselineRows,
		})
	}
	return all
}

func createTable(ctx context.Context, s *system.System) error {
	config := dynamodbtest.Config(s.Engine.Endpoint, func(string) string { return "" })
	s.DropOnClose(ctx, baselineTable(s))
	return dynamodbtest.Create(ctx, dynamodb.NewFromConfig(config), baselines.Definition(baselineTable(s)))
}

// baselineRows returns the order rows of a table that also holds locks and idempotency
// records.
func baselineRows(ctx context.Context, s *system.System) iter.Seq2[run.Row, error] {
	return func(yield func(run.Row, error) bool) {
		for item, err := range s.Items(ctx, baselineTable(s)) {
			row, isOrder := baselineRow(item)
			if (isOrder || err != nil) && !yield(row, err) {
				return
			}
		}
	}
}

func baselineRow(item system.Item) (row run.Row, isOrder bool) {
	row.OrderID, isOrder = strings.CutPrefix(system.Text(item, baselines.ID), "order#")
	status := baselines.Status(system.Text(item, "status"))
	row.Settled, row.Status, row.Amount = status != "", order.Declined, system.Number(item, "amount")
	if status == baselines.Paid {
		row.Status = order.Paid
	}
	return row, isOrder
}
