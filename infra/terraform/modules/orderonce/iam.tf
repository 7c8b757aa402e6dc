# docs/reference/iam.md explains each statement, and a test compares the two. Every
# statement names its actions and ARNs.

locals {
  partition = data.aws_partition.current.partition
  account   = "arn:${local.partition}:iam::${data.aws_caller_identity.current.account_id}:root"

  kms_keys = sort(setunion(var.kms_key_arn == null ? [] : [var.kms_key_arn], var.previous_kms_key_arns))

  # The names by which policies know the services of this region.
  services = { for service in ["dynamodb", "secretsmanager", "sqs"] :
    service => "${service}.${data.aws_region.current.region}.${data.aws_partition.current.dns_suffix}"
  }

  # The statements of every role beside those of its part.
  role_statements = { for name in keys(local.functions) : name => merge(
    {
      WriteLogs = {
        Action = ["logs:CreateLogStream", "logs:PutLogEvents"]
        # The only wildcard, because Lambda names the log streams.
        Resource = "${aws_cloudwatch_log_group.functions[name].arn}:log-stream:*"
      }
    },
    { for function, key in local.stripe_keys : "ReadStripeKey" => {
      Action   = "secretsmanager:GetSecretValue"
      Resource = key.arn
    } if function == name },
    { for mode in ["Active"] : "WriteTraces" => {
      Action   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
      Resource = "*" # X-Ray supports no resources for either action
    } if var.tracing },
  ) }
}

resource "aws_iam_role" "functions" {
  for_each = local.functions

  name        = "${local.prefix}-${each.key}"
  description = "Execution role of the ${each.key} function of ${local.prefix}"

  permissions_boundary = var.permissions_boundary

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "AssumedByLambda"
      Effect    = "Allow"
      Principal = { Service = "lambda.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy" "functions" {
  for_each = local.functions

  name = each.key
  role = aws_iam_role.functions[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [for sid, statement in merge(local.statements[each.key], local.role_statements[each.key]) :
      merge({ Sid = sid, Effect = "Allow" }, statement)
    ]
  })
}

# A separate policy, because queues, tables and secrets depend on it: a role must be
# allowed to use a key before anything is encrypted with it. It includes the previous
# keys, because waiting messages and backups stay encrypted with them.
resource "aws_iam_role_policy" "keys" {
  for_each = { for name, function in local.functions : name => function.kms_services if length(local.kms_keys) > 0 }

  name = "keys"
  role = aws_iam_role.functions[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "UseKMSKeys"
      Effect    = "Allow"
      Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
      Resource  = local.kms_keys
      Condition = { StringEquals = { "kms:ViaService" = [for service in each.value : local.services[service]] } }
    }]
  })
}
