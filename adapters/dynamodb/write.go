package dynamodb

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Update makes one conditional UpdateItem and returns the item as it is afterwards. If
// the condition fails, Refused returns the item that failed it.
func Update(ctx context.Context, c *dynamodb.Client, in *dynamodb.UpdateItemInput) (Item, error) {
	in.ReturnValues = types.ReturnValueAllNew
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	out, err := c.UpdateItem(ctx, in)
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// TextOf returns a string attribute of an item, or "".
func TextOf(i Item, name string) string {
	if s, ok := i[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
