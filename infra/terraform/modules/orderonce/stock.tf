# Stock, if stock_tracking. The transactions that write orders also move it:
# available, reserved, sold. docs/guides/deploy.md says how to turn it on and off.

# No sort key, stream or expiry: a row per SKU, which stays. infra/terraform/README.md says
# what a lost table means.
resource "aws_dynamodb_table" "stock" {
  count = var.stock_tracking ? 1 : 0

  name                        = "${local.prefix}-stock"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "sku"
  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "sku"
    type = "S"
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null # false: encrypted with a key that AWS owns
    kms_key_arn = var.kms_key_arn
  }

  depends_on = [aws_iam_role_policy.keys]
}

locals {
  # Of the three functions that write orders, and of operators who repair. A transaction
  # needs the permissions of its parts, and each part for the stock is an update. No read is
  # needed, because a failed condition returns the row.
  stock_statements = { for table in aws_dynamodb_table.stock : "MoveStock" => {
    Action   = "dynamodb:UpdateItem"
    Resource = table.arn
  } }

  stock_environment = { for table in aws_dynamodb_table.stock : "STOCK_TABLE" => table.name }
}
