package baselines

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
)

var _ Table = (*DynamoDB)(nil)

// DynamoDB is a Table in DynamoDB, with the retries of its aws.Config. When the response
// to a conditional write is lost, the SDK retries it, and the retry fails on the item
// that the first attempt wrote. It is safe for concurrent use.
type DynamoDB struct {
	client *sdk.Client
	name   string
}

// NewDynamoDB returns the table called name, which must exist.
func NewDynamoDB(cfg aws.Config, name string) *DynamoDB {
	return &DynamoDB{client: sdk.NewFromConfig(cfg), name: name}
}

// Definition returns the definition of a table. It has no time to live: handlers ask the
// items themselves, because DynamoDB may delete them days late.
func Definition(name string) *sdk.CreateTableInput {
	return &sdk.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(ID), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String(ID), KeyType: types.KeyTypeHash}},
	}
}

// Get implements Table. The read is eventually consistent, the default of GetItem.
func (d *DynamoDB) Get(ctx context.Context, id string) (Item, error) {
	out, err := d.client.GetItem(ctx, &sdk.GetItemInput{TableName: &d.name, Key: encode(Item{ID: id})})
	if err != nil {
		return Item{}, fmt.Errorf("get %q: %w", id, err)
	}
	return decode(out.Item)
}

// Put implements Table.
func (d *DynamoDB) Put(ctx context.Context, item Item, c Condition) (refusing Item, err error) {
	in := &sdk.PutItemInput{
		TableName: &d.name, Item: encode(item),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if c.Open {
		in.ConditionExpression = aws.String("attribute_not_exists(#status)")
		in.ExpressionAttributeNames = map[string]string{"#status": "status"}
	}
	if c.New {
		in.ConditionExpression = aws.String("attribute_not_exists(id)")
	}
	if !c.FreeAt.IsZero() {
		in.ConditionExpression = aws.String("attribute_not_exists(id) OR expiration < :now OR " +
			"(#status = :running AND in_progress_expiration < :nowMillis)")
		in.ExpressionAttributeNames = map[string]string{"#status": "status"}
		in.ExpressionAttributeValues = map[string]types.AttributeValue{
			":now": dynamodb.Number(c.FreeAt.Unix()), ":nowMillis": dynamodb.Millis(c.FreeAt),
			":running": dynamodb.Text(inProgress),
		}
	}
	_, err = d.client.PutItem(ctx, in)
	if old, refused := dynamodb.Refused(err); refused {
		return decode(old)
	}
	if err != nil {
		return Item{}, fmt.Errorf("put %q: %w", item.ID, err)
	}
	return Item{}, nil
}

// Delete implements Table.
func (d *DynamoDB) Delete(ctx context.Context, id string) error {
	in := &sdk.DeleteItemInput{TableName: &d.name, Key: encode(Item{ID: id})}
	if _, err := d.client.DeleteItem(ctx, in); err != nil {
		return fmt.Errorf("delete %q: %w", id, err)
	}
	return nil
}

// fields ties an item to its attributes. The names are the defaults of Powertools for AWS
// Lambda.
func (i *Item) fields(f *dynamodb.Fields) error {
	dynamodb.TextField(f, ID, &i.ID)
	dynamodb.TextField(f, "status", &i.Status)
	dynamodb.TextField(f, "validation", &i.Validation)
	dynamodb.TextField(f, "intent", &i.Intent)
	for name, n := range map[string]*int64{
		"amount": &i.Amount, "expiration": &i.Expiration, "in_progress_expiration": &i.Deadline,
	} {
		if !f.Encodes || *n != 0 {
			dynamodb.NumberField(f, name, n)
		}
	}
	return f.Err
}

func encode(item Item) dynamodb.Item {
	out := dynamodb.Item{}
	_ = item.fields(&dynamodb.Fields{Item: out, Encodes: true}) // only reading fails
	return out
}

func decode(in dynamodb.Item) (item Item, err error) {
	return item, item.fields(&dynamodb.Fields{Item: in})
}
