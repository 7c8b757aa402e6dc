package main

import (
	"context"
	"iter"
	"strings"
	"sync"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/storm/play"
	"orderonce/scripts/local/system"
)

// theirTable is the table of a handler that is not ours, in the system that it runs in.
func theirTable(s *system.System) string { return s.Options.Env[tableVariable] }

const tableVariable = "ORDERS_TABLE"

// program is the one program of all designs. It is built once, for whoever asks first.
type program struct {
	pkg, folder  string
	once         sync.Once
	binary, next string
	err          error
}

func (p *program) build(ctx context.Context, _ string) (binary, next string, err error) {
	p.once.Do(func() { p.binary, p.next, p.err = build(ctx, lambdatest.Program{Package: p.pkg}, p.folder) })
	return p.binary, p.next, p.err
}

// others are the designs that people copy. They are one program, built into a folder, which is told which of them it is.
func others(pkg, folder string) []play.Handler {
	one := &program{pkg: pkg, folder: folder}
	var all []play.Handler
	for _, d := range baselines.All() {
		all = append(all, play.Handler{
			Name: d.Name, Pattern: d.Pattern, Claim: d.Claim, OneEach: d.FIFO,
			Build: one.build,
			Options: func(o *system.Options) {
				o.FIFO = o.FIFO || d.FIFO
				o.Rules.ListLag = d.ListLag
				o.Travels = true
				o.Env = map[string]string{
					"DESIGN": d.Name, tableVariable: system.TableIn(o.Engine, "others"), "FUNCTION_TIMEOUT": o.FunctionTimeout.String(),
				}
			},
			Prepare: createTable,
			Rows:    theirRows,
		})
	}
	return all
}

func createTable(ctx context.Context, s *system.System) error {
	config := dynamodbtest.Config(s.Engine.Endpoint, func(string) string { return "" })
	if err := baselines.NewDynamoDB(config, theirTable(s)).Create(ctx); err != nil {
		return err
	}
	s.DropOnClose(ctx, theirTable(s))
	return nil
}

// theirRows are the orders' rows among the other items of the table.
func theirRows(ctx context.Context, s *system.System) iter.Seq2[play.Row, error] {
	return func(yield func(play.Row, error) bool) {
		for item, err := range s.Items(ctx, theirTable(s)) {
			row, isOrder := theirRow(item)
			if (isOrder || err != nil) && !yield(row, err) {
				return
			}
		}
	}
}

func theirRow(item system.Item) (row play.Row, isOrder bool) {
	row.OrderID, isOrder = strings.CutPrefix(system.Text(item, baselines.ID), "order#")
	status := baselines.Status(system.Text(item, "status"))
	row.Settled, row.Says, row.Amount = status != "", order.Declined, system.Number(item, "amount")
	if status == baselines.Paid {
		row.Says = order.Paid
	}
	return row, isOrder
}
