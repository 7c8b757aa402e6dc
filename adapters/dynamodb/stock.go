package dynamodb

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
)

// The conditions and updates of stock. An order's row holds its goods in the attribute
// stock until their effect, so each effect happens once.
const (
	mayHold   = claimed + " AND attribute_not_exists(stock)"
	hold      = "SET stock = :stock, updatedAt = :now"
	holds     = " AND stock = :stock"
	holdsNone = " AND attribute_not_exists(stock)"
	enough    = "available >= :n"
	reserve   = "SET available = available - :n, reserved = reserved + :n"
	reserved  = "reserved >= :n"
	sell      = "SET reserved = reserved - :n, sold = sold + :n"
	free      = "SET reserved = reserved - :n, available = available + :n"
	addStock  = "SET available = if_not_exists(available, :zero) + :n, reserved = if_not_exists(reserved, :zero)," +
		" sold = if_not_exists(sold, :zero)"
)

// WithStock returns the store with an option: Begin reserves an order's goods in this
// table, and the writes that settle the order sell or release them. The table's partition
// key is sku. Every program that settles orders must use the same table.
//
// Begin of a new order is one TransactWriteItems. A takeover of an order without goods
// costs a second and a third call.
func (s *Store) WithStock(table string) *Store {
	with := *s
	with.stock = table
	return &with
}

var errNoStockTable = errors.New("the order holds stock, but no stock table is configured: set STOCK_TABLE")

// beginWithStock claims the order and reserves its goods, in one transaction if the order
// is new. A row that exists, or an article that is short, leads to the ordinary claim.
func (s *Store) beginWithStock(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	goods := o.Goods()
	if len(goods) > order.MaxArticles {
		c, err := s.begin(ctx, o, l)
		return short(c, missing{sku: order.TooManyArticles}), err
	}
	r, missed, err := s.beginNew(ctx, o, l, goods)
	if err != nil || r.Owner == l.Owner && r.Stock != nil {
		return order.NewClaim(r, o, l), err
	}
	c, err := s.begin(ctx, o, l)
	switch {
	case err != nil || c.Stock != nil:
		return c, err
	case missed.sku != "":
		return short(c, missed), nil
	}
	return s.hold(ctx, c, goods)
}

// missing is an article that is short; the zero value is none.
type missing struct {
	sku      string
	unlisted bool // the stock table has no such item
}

// short returns the claim with the article that is short, unless it holds its goods.
func short(c order.Claim, m missing) order.Claim {
	if c.Stock == nil {
		c.Short, c.Unlisted = m.sku, m.unlisted
	}
	return c
}

// beginNew writes a new order's row and reserves its goods. It returns the row that
// refused it, if there is one, with the error of order.CheckClaim, or the article that
// was short.
func (s *Store) beginNew(
	ctx context.Context, o order.Order, l order.Lease, goods order.Goods,
) (r order.Record, missed missing, err error) {
	set, values := beginUpdate(o, l, o.Fingerprint())
	values[":stock"] = encodeGoods(goods)
	err = s.transactRow(ctx, &types.Update{
		ConditionExpression: aws.String(absent), UpdateExpression: aws.String(set + ", stock = :stock"),
		ExpressionAttributeValues: values,
	}, o.ID(), s.stockUpdates(goods, enough, reserve)...)
	if err == nil {
		return order.Record{
			OrderID: o.ID(), Fingerprint: o.Fingerprint(), Status: order.Open, Owner: l.Owner, Attempt: 1,
			Stock: goods, CreatedAt: l.From, Trace: l.Trace,
		}, missing{}, nil
	}
	if missed := refusedArticle(err, goods, 1); missed.sku != "" {
		return order.Record{}, missed, nil
	}
	r, err = refusingOrder(err)
	if err == nil {
		err = order.CheckClaim(r, o, l)
	}
	return r, missing{}, err
}

// hold reserves the goods of a claimed order that holds none. If the response to its own
// write was lost, the row that refuses the second one holds them.
func (s *Store) hold(ctx context.Context, c order.Claim, goods order.Goods) (order.Claim, error) {
	err := s.transactRow(ctx, &types.Update{
		ConditionExpression: aws.String(mayHold), UpdateExpression: aws.String(hold),
		ExpressionAttributeValues: row{
			":owner": text(c.Lease.Owner), ":open": text(order.Open), ":stock": encodeGoods(goods),
			":now": millis(c.Lease.From),
		},
	}, c.Order.ID(), s.stockUpdates(goods, enough, reserve)...)
	if err == nil {
		c.Stock = goods
		return c, nil
	}
	if missed := refusedArticle(err, goods, 1); missed.sku != "" {
		return short(c, missed), nil
	}
	r, err := refusingOrder(err)
	if err == nil && (r.Owner != c.Lease.Owner || r.Stock == nil) {
		err = errConcurrent
	}
	return order.NewClaim(r, c.Order, c.Lease), err
}

// stockEffects adds the effect of a transition to the update of its row and returns the
// updates of the stock. It changes nothing in a store without stock.
func (s *Store) stockEffects(
	u *types.Update, r order.Record, e order.Event,
) ([]types.TransactWriteItem, error) {
	switch {
	case s.stock == "" && len(r.Stock) > 0:
		return nil, errNoStockTable
	case s.stock == "":
		return nil, nil
	case len(r.Stock) == 0:
		u.ConditionExpression = aws.String(*u.ConditionExpression + holdsNone)
		return nil, nil
	}
	u.ConditionExpression = aws.String(*u.ConditionExpression + holds)
	u.ExpressionAttributeValues[":stock"] = encodeGoods(r.Stock)
	update := sell
	switch order.StockEffectOf(e.To, e.Intent) {
	case order.StockKept:
		return nil, nil
	case order.StockReleased:
		update = free
	case order.StockSold:
	}
	u.UpdateExpression = aws.String(*u.UpdateExpression + ", stock") // it ends with REMOVE
	return s.stockUpdates(r.Stock, reserved, update), nil
}

// stockUpdates returns one conditional update for each article, in the order of SKUs.
func (s *Store) stockUpdates(goods order.Goods, condition, update string) []types.TransactWriteItem {
	var all []types.TransactWriteItem
	for _, sku := range goods.SKUs() {
		all = append(all, types.TransactWriteItem{Update: &types.Update{
			TableName: &s.stock, Key: row{"sku": text(sku)},
			ConditionExpression: aws.String(condition), UpdateExpression: aws.String(update),
			ExpressionAttributeValues:           row{":n": number(goods[sku])},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld, // no item: unlisted
		}})
	}
	return all
}

// refusedArticle returns the first article whose condition failed, or none if the row has
// a reason of its own. The updates of stockUpdates start at index first of the
// transaction.
//
// If the row is held by another transaction of the same order, an article may show the
// effect of that one already, so its refusal proves nothing.
func refusedArticle(err error, goods order.Goods, first int) missing {
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || len(canceled.CancellationReasons) == 0 ||
		aws.ToString(canceled.CancellationReasons[0].Code) != noReason {
		return missing{}
	}
	for i, sku := range goods.SKUs() {
		if at := first + i; at < len(canceled.CancellationReasons) {
			if why := canceled.CancellationReasons[at]; aws.ToString(why.Code) == conditionFailed {
				return missing{sku, len(why.Item) == 0}
			}
		}
	}
	return missing{}
}

// stockError reports an article of which fewer pieces are reserved than the order holds.
// Only an edit or a deletion of its item can have caused that.
func stockError(err error, goods order.Goods) error {
	if sku := refusedArticle(err, goods, 2).sku; sku != "" {
		return fmt.Errorf("%w: stock of %q: fewer pieces are reserved than the %d that the order holds",
			order.ErrCorrupt, sku, goods[sku])
	}
	return err
}

// Stock returns the stock of an article with one strongly consistent GetItem, or
// order.ErrNotFound.
func (s *Store) Stock(ctx context.Context, sku string) (order.Stock, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.stock, Key: row{"sku": text(sku)}, ConsistentRead: aws.Bool(true),
	})
	if err == nil && len(out.Item) == 0 {
		err = order.ErrNotFound
	}
	if err != nil {
		return order.Stock{}, fmt.Errorf("load stock of %q: %w", sku, err)
	}
	return decodeStock(out.Item)
}

// AddStock adds n pieces of an article with one TransactWriteItems, and returns its stock
// as Stock does. A negative n takes pieces away: it returns order.ErrTooFewAvailable if
// fewer are available.
//
// It is a transaction of one write because of the SDK's client request token: a retry
// after a lost response must not add again. AddStock itself has no key, so another call
// adds again, also after an error that is not ErrTooFewAvailable.
func (s *Store) AddStock(ctx context.Context, sku string, n int64) (order.Stock, error) {
	condition := "attribute_not_exists(sku) OR available >= :least"
	if n < 0 {
		condition = "available >= :least"
	}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName: &s.stock, Key: row{"sku": text(sku)},
			ConditionExpression: &condition, UpdateExpression: aws.String(addStock),
			ExpressionAttributeValues: row{":n": number(n), ":zero": number(0), ":least": number(max(-n, 0))},
		}}},
	})
	if _, refused := Refused(err); refused {
		err = order.ErrTooFewAvailable
	}
	if err != nil {
		return order.Stock{}, fmt.Errorf("add %d pieces of %q: %w", n, sku, err)
	}
	return s.Stock(ctx, sku)
}

// Recount corrects the item of an article of which pieces are in store, sold ones apart:
// those that orders hold are reserved, and the others are available. It scans the orders
// table, strongly consistent, and returns the stock as it is afterwards.
//
// It returns order.ErrTooFewAvailable if orders hold more, and order.ErrStale if the item
// changed meanwhile. Goods that an order reserves and releases during the scan may escape
// both, so stop what settles orders first.
func (s *Store) Recount(ctx context.Context, sku string, pieces int64) (order.Stock, error) {
	seen, err := s.Stock(ctx, sku)
	if err != nil && !errors.Is(err, order.ErrNotFound) {
		return order.Stock{}, err
	}
	condition, values := "attribute_not_exists(sku)", row{}
	if err == nil {
		condition = "available = :available AND reserved = :reserved AND sold = :sold"
		values = row{
			":available": number(seen.Available), ":reserved": number(seen.Reserved), ":sold": number(seen.Sold),
		}
	}
	held, err := s.held(ctx, sku)
	if err == nil && held > pieces {
		err = fmt.Errorf("%w: orders hold %d", order.ErrTooFewAvailable, held)
	}
	if err != nil {
		return order.Stock{}, fmt.Errorf("recount %q: %w", sku, err)
	}
	values[":free"], values[":held"], values[":sales"] = number(pieces-held), number(held), number(seen.Sold)
	now, err := Update(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.stock, Key: row{"sku": text(sku)}, ConditionExpression: &condition,
		UpdateExpression:          aws.String("SET available = :free, reserved = :held, sold = :sales"),
		ExpressionAttributeValues: values,
	})
	if _, refused := Refused(err); refused {
		err = order.ErrStale
	}
	if err != nil {
		return order.Stock{}, fmt.Errorf("recount %q: %w", sku, err)
	}
	return decodeStock(now)
}

// held returns how many pieces of an article orders hold.
func (s *Store) held(ctx context.Context, sku string) (pieces int64, err error) {
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true),
		FilterExpression:         aws.String("attribute_exists(stock.#sku)"),
		ExpressionAttributeNames: map[string]string{"#sku": sku},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, err
		}
		for _, item := range page.Items {
			d := decoder{item: item}
			if pieces += d.goods("stock")[sku]; d.err != nil {
				return 0, fmt.Errorf("row of order %q: %w", d.optionalText("orderId"), d.err)
			}
		}
	}
	return pieces, nil
}

func decodeStock(item row) (order.Stock, error) {
	d := decoder{item: item}
	s := order.Stock{
		SKU: d.text("sku"), Available: d.number("available"),
		Reserved: d.number("reserved"), Sold: d.number("sold"),
	}
	if d.err != nil {
		return order.Stock{}, fmt.Errorf("stock item: %w", d.err)
	}
	return s, nil
}

func encodeGoods(goods order.Goods) *types.AttributeValueMemberM {
	m := row{}
	for sku, n := range goods {
		m[sku] = number(n)
	}
	return &types.AttributeValueMemberM{Value: m}
}

// goods decodes the goods that an order holds; nil if it holds none.
func (d *decoder) goods(name string) order.Goods {
	if d.item[name] == nil {
		return nil
	}
	m, ok := d.item[name].(*types.AttributeValueMemberM)
	if !ok {
		d.want(name, "a map")
		return nil
	}
	in, goods := decoder{item: m.Value}, order.Goods{}
	for sku := range m.Value {
		goods[sku] = in.number(sku)
	}
	d.err = errors.Join(d.err, in.err)
	return goods
}
